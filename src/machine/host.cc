// See host.h; processors are in cpu.cc.
#include "machine/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "machine/parse.h"

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
    for (const std::string_view text : words(*distances)) {
      if (const auto distance = parse_small(text, 0, 255)) node.distances.push_back(*distance);
    }
  }
  return node;
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

}  // namespace assay::machine
