// Processors, memory, NUMA nodes, drivers and network adapters of fake machines.
#include "machine/host.h"

#include <gtest/gtest.h>

#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

TEST(Host, TwoSockets) {
  const FakeTree tree;
  tree.add_host(2, 4);
  Notes notes;
  const Cpu cpu = read_cpu(FileTree(tree.root()), notes);
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 8);
  EXPECT_EQ(cpu.threads, 16);
  EXPECT_EQ(cpu.allowed_threads, 16);
  EXPECT_EQ(cpu.model, "Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz");
  EXPECT_EQ(cpu.features,
            (std::vector<std::string>{"avx", "fma", "avx2", "avx512f", "avx512_bf16", "amx_bf16"}));

  const auto nodes = read_numa_nodes(FileTree(tree.root()), notes);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[1].id, 1);
  EXPECT_EQ(nodes[1].cpus, (std::vector<int>{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(nodes[1].memory, base::Bytes(1056710656LL * 1024));
  EXPECT_EQ(nodes[1].distances, (std::vector<int>{21, 10}));

  const Os os = read_os(FileTree(tree.root()), notes);
  EXPECT_EQ(os.name, "Ubuntu");
  EXPECT_EQ(os.version, "24.04");
  EXPECT_EQ(os.kernel, "6.8.0-40-generic");
  EXPECT_TRUE(notes.empty());
}

TEST(Host, AffinityCountsOnlyProcessorsThatAreOnline) {
  const FakeTree tree;
  tree.add_host(1, 4);
  tree.write("/proc/self/status", "Cpus_allowed:\tff\nCpus_allowed_list:\t2-5,100-200\n");
  Notes notes;
  EXPECT_EQ(read_cpu(FileTree(tree.root()), notes).allowed_threads, 4);
}

TEST(Host, OldKernelsAndOtherProcessors) {
  const FakeTree tree;
  tree.write("/sys/devices/system/cpu/online", "0-1");
  for (const char* cpu : {"0", "1"}) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    tree.write(topology + "physical_package_id", "-1");
    tree.write(topology + "thread_siblings_list", cpu);
  }
  tree.write("/proc/cpuinfo",
             "processor\t: 0\nFeatures\t: fp asimd sve bf16\n"
             "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  Notes notes;
  const Cpu cpu = read_cpu(FileTree(tree.root()), notes);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.model, "arm64 implementer 0x41 part 0xd4f");
  EXPECT_EQ(cpu.features, (std::vector<std::string>{"asimd", "bf16", "sve"}));
}

TEST(Host, NothingThereIsNotedNotGuessed) {
  const FakeTree tree;
  const FileTree files(tree.root());
  Notes notes;
  EXPECT_EQ(read_cpu(files, notes).threads, 0);
  EXPECT_EQ(read_memory(files, notes), base::Bytes());
  EXPECT_TRUE(read_numa_nodes(files, notes).empty());
  EXPECT_EQ(read_hostname(files, notes), "");
  EXPECT_EQ(read_os(files, notes).kernel, "");
  EXPECT_EQ(notes.size(), 8U);
}

TEST(Host, UsableThreadsFollowAffinityAndQuota) {
  Cpu cpu{.threads = 16, .allowed_threads = 12};
  EXPECT_EQ(cpu.usable_threads(), 12);
  cpu.quota_threads = 2.5;
  EXPECT_EQ(cpu.usable_threads(), 3);
  cpu.quota_threads = 0.1;
  EXPECT_EQ(cpu.usable_threads(), 1);
  cpu.quota_threads = 1e300;
  EXPECT_EQ(cpu.usable_threads(), 12);
  EXPECT_EQ(Cpu().usable_threads(), 0);
}

TEST(Host, Modules) {
  const FakeTree tree;
  tree.write("/sys/module/nvidia/version", "580.65.06\n");
  tree.write("/sys/module/mlx5_core/refcnt", "3\n");
  tree.write("/sys/module/unrelated/version", "1\n");
  const std::map<std::string, std::string> expected = {{"nvidia", "580.65.06"}, {"mlx5_core", ""}};
  EXPECT_EQ(read_modules(FileTree(tree.root())), expected);
}

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
