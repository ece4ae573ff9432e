// See host.h. Processor counts come from sysfs, what the process may use from its affinity mask,
// model and instruction sets from /proc/cpuinfo (which lists only what the kernel lets programs
// use).
//
// hwloc could count packages and cores as well. Reading the two sysfs files per processor needs no
// library at start-up, writes no warnings to stderr, and works on a fake tree without changing the
// environment of the process; the tests compare it with hwloc.
#include "machine/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "machine/parse.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

// Modules that GPU work and fast networks depend on; nvidia_peermem and gdrdrv carry GPUDirect.
constexpr std::array<std::string_view, 8> kModules = {
    "nvidia", "nvidia_uvm", "nvidia_peermem", "nvidia_fs", "gdrdrv", "mlx5_core", "ib_core", "efa"};

// VALUE of a KEY=VALUE line of os-release, which may be quoted like a shell word.
std::string shell_value(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with('=')) continue;
    std::string_view value = line.substr(key.size() + 1);
    const char quote = value.empty() ? '\0' : value.front();
    if (quote != '"' && quote != '\'') return std::string(value);
    value.remove_prefix(1);
    if (value.ends_with(quote)) value.remove_suffix(1);
    std::string plain;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (quote == '"' && value[i] == '\\' && i + 1 < value.size()) ++i;
      plain += value[i];
    }
    return plain;
  }
  return {};
}

NumaNode read_numa_node(const FileTree& tree, int id) {
  const std::string directory = fmt::format("/sys/devices/system/node/node{}/", id);
  NumaNode node{.id = id};
  if (const auto cpus = tree.read(directory + "cpulist")) {
    node.cpus = parse_cpu_list(*cpus).value_or(std::vector<int>());
  }
  if (const auto meminfo = tree.read(directory + "meminfo")) {
    const std::string key = fmt::format("Node {} MemTotal", id);
    node.memory = kib_field(*meminfo, key).value_or(base::Bytes());
  }
  if (const auto distances = tree.read(directory + "distance")) {
    for (const std::string_view text : split_blanks(*distances)) {
      if (const auto distance = parse_small(text, 0, 255)) node.distances.push_back(*distance);
    }
  }
  return node;
}

// In the order they are reported: x86, then arm64.
constexpr std::array<std::string_view, 23> kFeatures = {
    "avx",      "f16c",        "fma",         "avx2",     "avx512f",  "avx512bw",
    "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8",
    "amx_bf16", "amx_fp16",    "avx512_fp16", "asimd",    "asimdhp",  "asimddp",
    "i8mm",     "bf16",        "sve",         "svebf16",  "sve2"};

void count_cores(const FileTree& tree, const std::vector<int>& online, Cpu& cpu) {
  std::set<int> packages;
  std::set<std::string> cores;  // a core is the set of threads on it: ids repeat between dies
  for (const int id : online) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", id);
    // -1: the firmware does not say; such a machine is taken as one package.
    const auto package = tree.read_small(topology + "physical_package_id", -1, 1 << 24);
    auto siblings = tree.read(topology + "core_cpus_list");
    if (!siblings) siblings = tree.read(topology + "thread_siblings_list");  // before Linux 5.3
    if (package) packages.insert(*package);
    if (siblings) cores.insert(*std::move(siblings));
  }
  cpu.sockets = static_cast<int>(packages.size());
  cpu.cores = static_cast<int>(cores.size());
}

void read_cpuinfo(std::string_view cpuinfo, Cpu& cpu) {
  if (const auto model = field(cpuinfo, "model name")) {
    cpu.model = *model;
  } else if (const auto part = field(cpuinfo, "CPU part")) {
    // arm64 reports numbers instead of a model name.
    cpu.model = fmt::format("arm64 implementer {} part {}",
                            field(cpuinfo, "CPU implementer").value_or("?"), *part);
  }
  auto flags = field(cpuinfo, "flags");
  if (!flags) flags = field(cpuinfo, "Features");
  const auto present = split_blanks(flags.value_or(""));
  for (const std::string_view feature : kFeatures) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) {
      cpu.features.emplace_back(feature);
    }
  }
}

// A full affinity mask includes processors that could be hot-plugged; only those online count.
std::optional<int> count_allowed(const FileTree& tree, const std::vector<int>& online) {
  const auto status = tree.read("/proc/self/status");
  const auto list = status ? field(*status, "Cpus_allowed_list") : std::nullopt;
  const auto mask = list ? parse_cpu_list(*list) : std::nullopt;
  if (!mask) return std::nullopt;
  return static_cast<int>(std::count_if(mask->begin(), mask->end(), [&](int id) {
    return online.empty() || std::binary_search(online.begin(), online.end(), id);
  }));
}

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

Os read_os(const FileTree& tree, Notes& notes) {
  Os os;
  auto release = tree.read("/etc/os-release");
  if (!release) release = tree.read("/usr/lib/os-release");
  if (release) {
    os.name = shell_value(*release, "NAME");
    os.version = shell_value(*release, "VERSION_ID");
  } else {
    notes.emplace_back("distribution unknown: no /etc/os-release");
  }
  os.kernel = tree.read("/proc/sys/kernel/osrelease").value_or("");
  if (os.kernel.empty())
    notes.emplace_back("kernel version unknown: no /proc/sys/kernel/osrelease");
  return os;
}

std::string read_hostname(const FileTree& tree, Notes& notes) {
  std::string name = tree.read("/proc/sys/kernel/hostname").value_or("");
  if (name.empty()) notes.emplace_back("host name unknown: no /proc/sys/kernel/hostname");
  return name;
}

base::Bytes read_memory(const FileTree& tree, Notes& notes) {
  const auto meminfo = tree.read("/proc/meminfo");
  const auto total = meminfo ? kib_field(*meminfo, "MemTotal") : std::nullopt;
  if (!total) notes.emplace_back("memory size unknown: no MemTotal in /proc/meminfo");
  return total.value_or(base::Bytes());
}

std::vector<NumaNode> read_numa_nodes(const FileTree& tree, Notes& notes) {
  std::vector<NumaNode> nodes;
  for (const std::string& name : tree.list("/sys/devices/system/node")) {
    if (!name.starts_with("node")) continue;
    if (const auto id = parse_small(std::string_view(name).substr(4), 0, 65535)) {
      nodes.push_back(read_numa_node(tree, *id));
    }
  }
  // The directory sorts node10 before node2.
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (nodes.empty()) notes.emplace_back("NUMA nodes unknown: none in /sys/devices/system/node");
  return nodes;
}

std::map<std::string, std::string> read_modules(const FileTree& tree) {
  std::map<std::string, std::string> modules;
  for (const std::string_view name : kModules) {
    const std::string directory = fmt::format("/sys/module/{}", name);
    if (!tree.exists(directory)) continue;
    modules.emplace(name, tree.read(directory + "/version").value_or(""));
  }
  return modules;
}

Cpu read_cpu(const FileTree& tree, Notes& notes) {
  Cpu cpu;
  const std::string online_text = tree.read("/sys/devices/system/cpu/online").value_or("");
  const auto online = parse_cpu_list(online_text).value_or(std::vector<int>());
  cpu.threads = static_cast<int>(online.size());
  count_cores(tree, online, cpu);
  if (cpu.threads == 0) {
    notes.emplace_back("processors not counted: no list in /sys/devices/system/cpu");
  } else if (cpu.cores == 0 || cpu.sockets == 0) {
    notes.emplace_back("cores not counted: no topology in /sys/devices/system/cpu");
  }

  if (const auto allowed = count_allowed(tree, online)) {
    cpu.allowed_threads = *allowed;
  } else {
    notes.emplace_back("affinity unknown: no Cpus_allowed_list in /proc/self/status");
  }

  // The first processor's entry is enough, and ends well within this.
  if (const auto cpuinfo = tree.read("/proc/cpuinfo", 16 * 1024)) read_cpuinfo(*cpuinfo, cpu);
  if (cpu.model.empty()) notes.emplace_back("processor model unknown: not in /proc/cpuinfo");
  return cpu;
}

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
