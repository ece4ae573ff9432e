#include "spec/this_machine.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "machine/discover.h"
#include "spec/presets.h"
#include "spec/toml.h"

namespace assay::spec {
namespace {

using machine::Gpu;
using machine::Machine;

Value value(Value::Data data) {
  return Value(std::move(data), Origin{"this machine", 0});
}

std::string text(base::BytesPerSecond rate) {
  return fmt::format("{} B/s", rate.count());
}

std::string usable_memory(const Machine& machine) {
  return std::to_string(machine.memory_limit.value_or(machine.memory).count());
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
  device.emplace("name", value(machine.cpu.model.empty() ? "CPU" : machine.cpu.model));
  if (machine.memory.count() > 0) device.emplace("memory", value(usable_memory(machine)));
  return device;
}

Value::Table gpu_device(const Gpu& gpu) {
  Value::Table device;
  if (const Preset* preset = preset_of_gpu(gpu.name)) {
    device.emplace("extends", value(preset->name));
  }
  device.emplace("kind", value("gpu"));
  device.emplace("name", value(gpu.name.empty() ? "unknown GPU" : gpu.name));
  if (gpu.memory) device.emplace("memory", value(std::to_string(gpu.memory->count())));
  if (gpu.power_limit)
    device.emplace("power", value(fmt::format("{} W", gpu.power_limit->count())));
  return device;
}

// A lane of PCIe generation g carries 0.25 GB/s · 2^(g-1) each way, before encoding.
std::optional<base::BytesPerSecond> pcie_rate(const machine::PcieLink& pcie) {
  if (!pcie.max_gen || !pcie.max_width || *pcie.max_gen < 1 || *pcie.max_gen > 8) return {};
  return base::BytesPerSecond(0.25e9 * static_cast<double>(1 << (*pcie.max_gen - 1)) *
                              static_cast<double>(*pcie.max_width));
}

// GPUs that GPU 0 reaches over NVLink, itself included.
std::int64_t nvlink_group(const Machine& machine) {
  std::int64_t group = 1;
  for (const machine::GpuLink& link : machine.gpu_links) {
    if (link.a == 0 && link.nvlinks > 0) ++group;
  }
  return group;
}

Value::Table node_link(const Machine& machine) {
  Value::Table link;
  const Gpu& gpu = machine.gpus.front();
  const auto devices = static_cast<std::int64_t>(machine.gpus.size());
  const auto pcie = pcie_rate(gpu.pcie);
  if (pcie) link.emplace("pcie", value(text(*pcie)));
  if (devices == 1) return link;

  const std::int64_t group = nvlink_group(machine);
  if (group > 1 && gpu.nvlinks && gpu.nvlink_rate) {
    const auto rate = *gpu.nvlink_rate * static_cast<double>(*gpu.nvlinks);
    const bool all = group == devices;
    link.emplace("kind", value(all ? "nvswitch" : "nvlink-groups"));
    link.emplace("bandwidth", value(text(rate)));
    if (!all) link.emplace("group", value(group));
  } else {
    link.emplace("kind", value("pcie"));
    if (pcie) link.emplace("bandwidth", value(text(*pcie)));
  }
  return link;
}

std::optional<Value::Table> node_network(const Machine& machine) {
  double bytes_per_s = 0;
  std::int64_t ports = 0;
  bool efa = false;
  for (const machine::Nic& nic : machine.nics) {
    if (nic.kind == machine::NicKind::kEthernet || !nic.rate || !nic.up.value_or(false)) continue;
    bytes_per_s += nic.rate->count();
    efa = efa || nic.kind == machine::NicKind::kEfa;
    ++ports;
  }
  if (ports == 0) return std::nullopt;
  Value::Table network;
  network.emplace("kind", value(efa ? "efa" : "infiniband"));
  network.emplace("bandwidth", value(text(base::BytesPerSecond(bytes_per_s))));
  network.emplace("ports", value(ports));
  return network;
}

std::int64_t gpu_numa_nodes(const Machine& machine) {
  std::set<int> nodes;
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.numa_node) nodes.insert(*gpu.numa_node);
  }
  return static_cast<std::int64_t>(nodes.size());
}

}  // namespace

Value cluster_document(const Machine& machine) {
  Value::Table cluster;
  const bool gpus = !machine.gpus.empty();
  cluster.emplace("devices_per_node",
                  value(gpus ? static_cast<std::int64_t>(machine.gpus.size()) : std::int64_t{1}));
  if (const int cpus = machine.cpu.usable_threads(); cpus > 0) {
    cluster.emplace("cpus", value(std::int64_t{cpus}));
  }
  if (machine.memory.count() > 0) {
    cluster.emplace("host_memory", value(usable_memory(machine)));
  }
  cluster.emplace("device", value(gpus ? gpu_device(machine.gpus.front()) : cpu_device(machine)));
  if (gpus) {
    cluster.emplace("link", value(node_link(machine)));
    if (const auto nodes = gpu_numa_nodes(machine); nodes > 0) {
      cluster.emplace("numa_nodes", value(nodes));
    }
  }
  if (auto network = node_network(machine)) cluster.emplace("network", value(std::move(*network)));

  Value::Table document;
  document.emplace("description", value("this machine, discovered: " + summary(machine)));
  document.emplace("cluster", value(std::move(cluster)));
  return value(std::move(document));
}

Value this_machine_document() {
  return cluster_document(machine::discover());
}

}  // namespace assay::spec
