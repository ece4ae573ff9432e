#include "spec/this_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "machine/discover.h"
#include "spec/enum_names.h"
#include "spec/presets.h"
#include "spec/schema.h"
#include "spec/toml.h"

namespace assay::spec {
namespace {

using machine::Gpu;
using machine::Machine;

Value value(Value::Data data) {
  return Value(std::move(data), Origin{"this machine", 0});
}

// These facts come from firmware and drivers, which can be wrong: a number that no key accepts is
// omitted. Values above this, in bytes or bytes per second, are not believed.
constexpr double kMostBelieved = 1e18;

bool believable(double number) {
  return number >= 1 && number <= kMostBelieved;
}

void add_rate(Value::Table& table, const char* key, base::BytesPerSecond rate) {
  if (believable(rate.count())) table.emplace(key, value(fmt::format("{:.0f} B/s", rate.count())));
}

void add_bytes(Value::Table& table, const char* key, base::Bytes size) {
  const auto count = static_cast<double>(size.count());
  if (believable(count)) table.emplace(key, value(std::to_string(size.count())));
}

void add_count(Value::Table& table, const char* key, std::int64_t count, double most) {
  if (count >= 1 && static_cast<double>(count) <= most) table.emplace(key, value(count));
}

base::Bytes usable_memory(const Machine& machine) {
  return machine.memory_limit.value_or(machine.memory);
}

// A name as reported by a driver, which may contain any bytes.
std::string name_or(const std::string& name, const char* unknown) {
  const std::string shown = base::printable(base::trim(name));
  return shown.empty() ? unknown : shown;
}

// The device preset whose `device.name` the driver reports.
const Preset* preset_of_gpu(const std::string& name) {
  for (const Preset& preset : presets()) {
    if (preset.kind != Kind::kDevice) continue;
    const auto document = parse_toml(preset.contents, preset.source);
    const Value* known = document ? document->at("device.name") : nullptr;
    if (known != nullptr && *known->get<std::string>() == name) return &preset;
  }
  return nullptr;
}

Value::Table cpu_device(const Machine& machine) {
  Value::Table device;
  device.emplace("kind", value("cpu"));
  device.emplace("name", value(name_or(machine.cpu.model, "CPU")));
  add_bytes(device, "memory", usable_memory(machine));
  return device;
}

Value::Table gpu_device(const Gpu& gpu) {
  Value::Table device;
  if (const Preset* preset = preset_of_gpu(gpu.name)) {
    device.emplace("extends", value(preset->name));
  }
  device.emplace("kind", value("gpu"));
  device.emplace("name", value(name_or(gpu.name, "unknown GPU")));
  if (gpu.memory) add_bytes(device, "memory", *gpu.memory);
  if (gpu.power_limit && believable(gpu.power_limit->count())) {
    device.emplace("power", value(fmt::format("{} W", gpu.power_limit->count())));
  }
  return device;
}

// A lane of PCIe generation g carries 0.25 GB/s · 2^(g-1) each way, before encoding.
std::optional<base::BytesPerSecond> pcie_rate(const machine::PcieLink& pcie) {
  if (!pcie.max_gen || !pcie.max_width || *pcie.max_gen < 1 || *pcie.max_gen > 8) return {};
  return base::BytesPerSecond(0.25e9 * static_cast<double>(1 << (*pcie.max_gen - 1)) *
                              static_cast<double>(*pcie.max_width));
}

// Indices of the GPUs of the same model as the first.
std::vector<int> gpus_of_first_model(const Machine& machine) {
  std::vector<int> same;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].name == machine.gpus.front().name) same.push_back(static_cast<int>(i));
  }
  return same;
}

Value::Table node_link(const Machine& machine, const std::vector<int>& gpus) {
  Value::Table link;
  const Gpu& gpu = machine.gpus.front();
  const auto pcie = pcie_rate(gpu.pcie);
  if (pcie) add_rate(link, "pcie", *pcie);
  if (gpus.size() == 1) return link;

  const NodeLinks links = node_links(machine, gpus);
  const auto nvlink =
      gpu.nvlink_rate.value_or(base::BytesPerSecond{}) * static_cast<double>(links.nvlinks);
  if (links.kind == LinkKind::kPcie || !believable(nvlink.count())) {
    link.emplace("kind", value("pcie"));
    if (pcie) add_rate(link, "bandwidth", *pcie);
    return link;
  }
  link.emplace("kind", value(std::string(to_text(links.kind))));
  add_rate(link, "bandwidth", nvlink);
  if (links.kind == LinkKind::kNvlinkGroups) link.emplace("group", value(links.group));
  return link;
}

std::optional<Value::Table> node_network(const Machine& machine) {
  double bytes_per_s = 0;
  std::int64_t ports = 0;
  bool efa = false;
  for (const machine::Nic& nic : machine.nics) {
    if (nic.kind == machine::NicKind::kEthernet || !nic.rate || !nic.up.value_or(false)) continue;
    if (!believable(nic.rate->count())) continue;
    bytes_per_s += nic.rate->count();
    efa = efa || nic.kind == machine::NicKind::kEfa;
    ++ports;
  }
  if (ports == 0) return std::nullopt;
  Value::Table network;
  network.emplace("kind", value(efa ? "efa" : "infiniband"));
  add_rate(network, "bandwidth", base::BytesPerSecond(std::min(bytes_per_s, kMostBelieved)));
  network.emplace("ports", value(ports));
  return network;
}

std::int64_t numa_nodes_of(const Machine& machine, const std::vector<int>& gpus) {
  std::set<int> nodes;
  for (const int gpu : gpus) {
    const auto& node = machine.gpus[static_cast<std::size_t>(gpu)].numa_node;
    if (node) nodes.insert(*node);
  }
  return static_cast<std::int64_t>(nodes.size());
}

std::string description(const Machine& machine, const std::vector<int>& gpus) {
  std::string text = "this machine, discovered: " + summary(machine);
  if (gpus.size() < machine.gpus.size()) {
    text += fmt::format("; taken as {} x {}", gpus.size(),
                        name_or(machine.gpus.front().name, "unknown GPU"));
  }
  return text;
}

// The links among the chosen GPUs, by their position in the choice.
class Graph {
 public:
  Graph(const machine::Machine& machine, const std::vector<int>& gpus) : size_(gpus.size()) {
    nvlinks_.resize(size_ * size_);
    const auto position = [&](int gpu) {
      return static_cast<std::size_t>(std::find(gpus.begin(), gpus.end(), gpu) - gpus.begin());
    };
    for (const machine::GpuLink& link : machine.gpu_links) {
      const std::size_t a = position(link.a);
      const std::size_t b = position(link.b);
      if (a == size_ || b == size_ || a == b || link.nvlinks <= 0) continue;
      nvlinks_[a * size_ + b] = nvlinks_[b * size_ + a] = link.nvlinks;
      switched_ = switched_ && link.nvswitch;
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  // Whether every link goes through switches.
  [[nodiscard]] bool switched() const { return switched_; }
  [[nodiscard]] std::int64_t nvlinks(std::size_t a, std::size_t b) const {
    return nvlinks_[a * size_ + b];
  }

  // The devices that `a` is linked to, including itself.
  [[nodiscard]] std::vector<std::size_t> linked_to(std::size_t a) const {
    std::vector<std::size_t> linked;
    for (std::size_t b = 0; b < size_; ++b) {
      if (a == b || nvlinks(a, b) > 0) linked.push_back(b);
    }
    return linked;
  }

 private:
  std::size_t size_;
  std::vector<std::int64_t> nvlinks_;
  bool switched_ = true;
};

// The size of the groups when all are equally large and every pair inside one is linked; else 1.
std::size_t group_size(const Graph& graph) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t a = 0; a < graph.size(); ++a) groups.push_back(graph.linked_to(a));
  for (const auto& group : groups) {
    if (group.size() != groups.front().size()) return 1;
    for (const std::size_t peer : group) {
      if (groups[peer] != group) return 1;
    }
  }
  return groups.front().size();
}

// NVLinks of the least connected device: through switches they serve every peer, direct links are
// summed.
std::int64_t fewest_nvlinks(const Graph& graph) {
  std::vector<std::int64_t> of_each(graph.size());
  for (std::size_t a = 0; a < graph.size(); ++a) {
    for (std::size_t b = 0; b < graph.size(); ++b) {
      const std::int64_t pair = graph.nvlinks(a, b);
      of_each[a] = graph.switched() ? std::max(of_each[a], pair) : of_each[a] + pair;
    }
  }
  return *std::min_element(of_each.begin(), of_each.end());
}

}  // namespace

Value cluster_document(const Machine& machine) {
  const std::vector<int> gpus = gpus_of_first_model(machine);
  Value::Table cluster;
  const auto devices = static_cast<std::int64_t>(gpus.empty() ? 1 : gpus.size());
  cluster.emplace("devices_per_node", value(devices));
  add_count(cluster, "cpus", machine.cpu.usable_threads(), kMostCpus);
  add_bytes(cluster, "host_memory", usable_memory(machine));
  if (gpus.empty()) {
    cluster.emplace("device", value(cpu_device(machine)));
  } else {
    cluster.emplace("device", value(gpu_device(machine.gpus.front())));
    cluster.emplace("link", value(node_link(machine, gpus)));
    add_count(cluster, "numa_nodes", numa_nodes_of(machine, gpus), kMostNumaNodes);
  }
  if (auto network = node_network(machine)) cluster.emplace("network", value(std::move(*network)));

  Value::Table document;
  document.emplace("description", value(description(machine, gpus)));
  document.emplace("cluster", value(std::move(cluster)));
  return value(std::move(document));
}

Value this_machine_document() {
  return cluster_document(machine::discover());
}

NodeLinks node_links(const machine::Machine& machine, const std::vector<int>& gpus) {
  const Graph graph(machine, gpus);
  const std::size_t size = group_size(graph);
  if (size < 2) return {};
  const std::int64_t nvlinks = fewest_nvlinks(graph);
  if (size < graph.size()) {
    return {LinkKind::kNvlinkGroups, static_cast<std::int64_t>(size), nvlinks};
  }
  return {graph.switched() ? LinkKind::kNvswitch : LinkKind::kNvlinkMesh, 0, nvlinks};
}

}  // namespace assay::spec
