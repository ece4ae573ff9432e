// See nic.h.
#include "machine/nic.h"

#include <fmt/format.h>

#include "machine/parse.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

// Values of /sys/class/net/*/type (linux/if_arp.h).
constexpr int kArpEther = 1;

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

void locate(const FileTree& tree, const std::string& device, Nic& nic) {
  nic.pci_bus_id = bus_id_in_path(tree.resolve(device));
  if (nic.pci_bus_id.empty()) return;
  nic.numa_node =
      tree.read_small("/sys/bus/pci/devices/" + nic.pci_bus_id + "/numa_node", 0, 65535);
}

NicKind rdma_kind(const FileTree& tree, const std::string& device, const std::string& port) {
  // EFA calls its link layer unspecified; its driver names it.
  if (last_component(tree.resolve(device + "/driver")) == "efa") return NicKind::kEfa;
  return tree.read(port + "/link_layer") == "Ethernet" ? NicKind::kRoce : NicKind::kInfiniband;
}

std::vector<Nic> rdma_ports(const FileTree& tree, const std::string& name) {
  const std::string directory = "/sys/class/infiniband/" + name;
  const std::string device = directory + "/device";
  const auto interfaces = tree.list(device + "/net");
  std::vector<Nic> nics;
  for (const std::string& port_name : tree.list(directory + "/ports")) {
    const auto port_number = parse_small(port_name, 0, 255);
    if (!port_number) continue;
    const std::string port = directory + "/ports/" + port_name;
    Nic nic{.name = name, .port = *port_number, .kind = rdma_kind(tree, device, port)};
    if (!interfaces.empty()) nic.interface = interfaces.front();
    if (const auto rate = tree.read(port + "/rate")) nic.rate = parse_infiniband_rate(*rate);
    if (const auto state = tree.read(port + "/state"))
      nic.up = state->find("ACTIVE") != state->npos;
    locate(tree, device, nic);
    nics.push_back(std::move(nic));
  }
  return nics;
}

std::optional<Nic> ethernet(const FileTree& tree, const std::string& name) {
  const std::string directory = "/sys/class/net/" + name;
  const std::string device = directory + "/device";
  if (!tree.exists(device)) return std::nullopt;
  if (tree.read_small(directory + "/type", 0, 65535) != kArpEther) return std::nullopt;
  if (!tree.list(device + "/infiniband").empty()) return std::nullopt;  // listed as RoCE

  Nic nic{.name = name, .kind = NicKind::kEthernet};
  // -1 when the link is down, an error when the driver (most virtual ones) does not know.
  if (const auto megabits = tree.read_small(directory + "/speed", 1, 100'000'000)) {
    nic.rate = base::BytesPerSecond(*megabits * 1e6 / 8.0);
  }
  const auto state = tree.read(directory + "/operstate");
  if (state && *state != "unknown") nic.up = *state == "up";
  locate(tree, device, nic);
  return nic;
}

}  // namespace

std::vector<Nic> find_nics(const FileTree& tree) {
  std::vector<Nic> nics;
  for (const std::string& name : tree.list("/sys/class/infiniband")) {
    for (Nic& nic : rdma_ports(tree, name)) nics.push_back(std::move(nic));
  }
  for (const std::string& name : tree.list("/sys/class/net")) {
    if (auto nic = ethernet(tree, name)) nics.push_back(*std::move(nic));
  }
  return nics;
}

}  // namespace assay::machine
