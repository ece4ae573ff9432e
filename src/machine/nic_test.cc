// Network adapters in fake sysfs trees.
#include "machine/nic.h"

#include <gtest/gtest.h>

#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

void add_rdma(const FakeTree& tree, const std::string& name, const std::string& device,
              const std::string& link_layer, const std::string& rate, const std::string& driver) {
  const std::string port = device + "/infiniband/" + name + "/ports/1/";
  tree.write(port + "link_layer", link_layer + "\n");
  tree.write(port + "rate", rate + "\n");
  tree.write(port + "state", "4: ACTIVE\n");
  tree.write("/sys/bus/pci/drivers/" + driver + "/bind", "");
  tree.link(device + "/driver", "/sys/bus/pci/drivers/" + driver);
  tree.link(device + "/infiniband/" + name + "/device", device);
  tree.link("/sys/class/infiniband/" + name, device + "/infiniband/" + name);
}

void add_interface(const FakeTree& tree, const std::string& name, const std::string& device,
                   const std::string& type, const std::string& speed) {
  const std::string directory = device + "/net/" + name;
  tree.write(directory + "/type", type + "\n");
  tree.write(directory + "/speed", speed + "\n");
  tree.write(directory + "/operstate", "up\n");
  tree.link(directory + "/device", device);
  tree.link("/sys/class/net/" + name, directory);
}

TEST(Nic, InfinibandRoceEfaAndEthernet) {
  const FakeTree tree;
  const auto pci = [&](const std::string& id, int node) {
    return tree.add_pci("pci0000:10", id, "0x15b3", "0x020000", node);
  };
  const auto ib = pci("0000:11:00.0", 0);
  add_rdma(tree, "mlx5_0", ib, "InfiniBand", "400 Gb/sec (4X NDR)", "mlx5_core");
  add_interface(tree, "ib0", ib, "32", "400000");
  const auto roce = pci("0000:12:00.0", 1);
  add_rdma(tree, "mlx5_1", roce, "Ethernet", "200 Gb/sec (4X HDR)", "mlx5_core");
  add_interface(tree, "ens1", roce, "1", "200000");
  const auto efa = pci("0000:13:00.0", 1);
  add_rdma(tree, "rdmap19s0", efa, "Unspecified", "100 Gb/sec (4X EDR)", "efa");
  const auto ethernet = pci("0000:14:00.0", -1);
  add_interface(tree, "eno1", ethernet, "1", "25000");
  add_interface(tree, "eth9", pci("0000:15:00.0", 0) + "/virtio3", "1", "-1");
  tree.write("/sys/class/net/lo/type", "772\n");  // no hardware behind it
  tree.write("/sys/class/net/docker0/type", "1\n");

  const auto nics = find_nics(FileTree(tree.root()));
  ASSERT_EQ(nics.size(), 5U);
  EXPECT_EQ(nics[0].name, "mlx5_0");
  EXPECT_EQ(nics[0].kind, NicKind::kInfiniband);
  EXPECT_EQ(nics[0].rate, base::BytesPerSecond(50e9));
  EXPECT_EQ(nics[0].up, true);
  EXPECT_EQ(nics[0].numa_node, 0);
  EXPECT_EQ(nics[0].interface, "ib0");
  EXPECT_EQ(nics[1].kind, NicKind::kRoce);
  EXPECT_EQ(nics[1].interface, "ens1");
  EXPECT_EQ(nics[2].kind, NicKind::kEfa);
  EXPECT_EQ(nics[3].name, "eno1");
  EXPECT_EQ(nics[3].kind, NicKind::kEthernet);
  EXPECT_EQ(nics[3].rate, base::BytesPerSecond(25e9 / 8));
  EXPECT_EQ(nics[3].numa_node, std::nullopt);
  EXPECT_EQ(nics[4].pci_bus_id, "0000:15:00.0");
  EXPECT_EQ(nics[4].rate, std::nullopt);
}

TEST(Nic, None) {
  const FakeTree tree;
  EXPECT_TRUE(find_nics(FileTree(tree.root())).empty());
}

}  // namespace
}  // namespace assay::machine
