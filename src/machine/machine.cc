// Machine as a summary line, a table and JSON, without touching the system again.
#include "machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "machine/parse.h"

namespace assay::machine {
namespace {

// Drops trademark signs and the nominal clock; the model number is enough.
std::string short_cpu_model(std::string model) {
  for (const std::string_view noise : {"(R)", "(TM)", "(r)", "(tm)", " CPU"}) {
    for (auto at = model.find(noise); at != std::string::npos; at = model.find(noise)) {
      model.erase(at, noise.size());
    }
  }
  if (const auto clock = model.find(" @ "); clock != std::string::npos) model.erase(clock);
  std::string single_spaced;
  for (const char c : model) {
    if (c != ' ' || (!single_spaced.empty() && single_spaced.back() != ' ')) single_spaced += c;
  }
  return single_spaced.empty() ? "CPU of unknown model" : single_spaced;
}

std::string cpu_summary(const Cpu& cpu) {
  std::string text;
  if (cpu.sockets > 1 && cpu.cores > 0) {
    text = fmt::format("{} × {}-core ", cpu.sockets, cpu.cores / cpu.sockets);
  } else if (cpu.cores > 0) {
    text = fmt::format("{}-core ", cpu.cores);
  }
  text += short_cpu_model(cpu.model);
  if (const int usable = cpu.usable_threads(); usable > 0 && usable < cpu.threads) {
    text += fmt::format(" ({} of {} threads usable)", usable, cpu.threads);
  }
  return text;
}

std::string memory_summary(const Machine& machine) {
  if (machine.memory.count() == 0) return "memory unknown";
  std::string text = base::to_text(machine.memory);
  if (machine.memory_limit)
    text += fmt::format(" (limit {})", base::to_text(*machine.memory_limit));
  return text;
}

std::string gpu_model(const Gpu& gpu) {
  std::string text = gpu.name.empty() ? "NVIDIA GPU of unknown model" : gpu.name;
  if (gpu.memory) text += fmt::format(" ({})", base::to_text(*gpu.memory));
  return text;
}

std::string gpu_summary(const Machine& machine) {
  if (machine.gpus.empty()) return "no GPU";
  std::vector<std::pair<std::string, int>> models;  // in order of appearance
  for (const Gpu& gpu : machine.gpus) {
    const std::string model = gpu_model(gpu);
    const auto seen = std::find_if(models.begin(), models.end(),
                                   [&](const auto& entry) { return entry.first == model; });
    if (seen == models.end()) {
      models.emplace_back(model, 1);
    } else {
      ++seen->second;
    }
  }
  std::string text;
  for (const auto& [model, count] : models) {
    if (!text.empty()) text += " + ";
    text += count == 1 ? model : fmt::format("{} × {}", count, model);
  }
  return text;
}

using base::Json;

Json count_or_null(int count) {
  return count == 0 ? Json() : Json(count);
}

Json bytes_or_null(base::Bytes value) {
  return value.count() == 0 ? Json() : Json(value.count());
}

Json cpu_json(const Cpu& cpu) {
  return {{"model", base::or_null(cpu.model)},
          {"sockets", count_or_null(cpu.sockets)},
          {"cores", count_or_null(cpu.cores)},
          {"threads", count_or_null(cpu.threads)},
          {"allowed_threads", count_or_null(cpu.allowed_threads)},
          {"quota_threads", base::or_null(cpu.quota_threads)},
          {"usable_threads", count_or_null(cpu.usable_threads())},
          {"features", cpu.features}};
}

Json numa_json(const NumaNode& node) {
  return {{"id", node.id},
          {"cpus", format_cpu_list(node.cpus)},
          {"memory_bytes", bytes_or_null(node.memory)},
          {"distances", node.distances}};
}

Json gpu_json(const Gpu& gpu) {
  Json compute;
  if (gpu.compute) {
    compute = std::to_string(gpu.compute->major) + "." + std::to_string(gpu.compute->minor);
  }
  return {{"index", gpu.index},
          {"name", base::or_null(gpu.name)},
          {"uuid", base::or_null(gpu.uuid)},
          {"pci_bus_id", base::or_null(gpu.pci_bus_id)},
          {"memory_bytes", base::or_null(gpu.memory)},
          {"numa_node", base::or_null(gpu.numa_node)},
          {"pcie",
           {{"gen", base::or_null(gpu.pcie.gen)},
            {"width", base::or_null(gpu.pcie.width)},
            {"max_gen", base::or_null(gpu.pcie.max_gen)},
            {"max_width", base::or_null(gpu.pcie.max_width)}}},
          {"nvlinks", base::or_null(gpu.nvlinks)},
          {"nvlink_rate_bytes_per_s", base::or_null(gpu.nvlink_rate)},
          {"power_limit_w", base::or_null(gpu.power_limit)},
          {"sm_count", base::or_null(gpu.sm_count)},
          {"compute_capability", std::move(compute)}};
}

Json link_json(const GpuLink& link) {
  return {{"a", link.a},
          {"b", link.b},
          {"pcie", to_text(link.pcie)},
          {"nvlinks", link.nvlinks},
          {"nvswitch", link.nvswitch}};
}

Json nic_json(const Nic& nic) {
  return {{"name", nic.name},
          {"port", nic.port},
          {"interface", base::or_null(nic.interface)},
          {"kind", to_text(nic.kind)},
          {"rate_bytes_per_s", base::or_null(nic.rate)},
          {"up", base::or_null(nic.up)},
          {"numa_node", base::or_null(nic.numa_node)},
          {"pci_bus_id", base::or_null(nic.pci_bus_id)}};
}

Json drivers_json(const Drivers& drivers) {
  Json modules = Json::object();
  for (const auto& [name, version] : drivers.modules) modules[name] = base::or_null(version);
  return {{"nvidia", base::or_null(drivers.nvidia)},
          {"cuda", base::or_null(drivers.cuda)},
          {"modules", std::move(modules)}};
}

template <class T>
Json array_json(const std::vector<T>& items, Json (*item_json)(const T&)) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(item_json(item));
  return array;
}

}  // namespace

int Cpu::usable_threads() const {
  const int allowed = allowed_threads > 0 ? allowed_threads : threads;
  if (!quota_threads) return allowed;
  const double share = std::ceil(std::max(*quota_threads, 1.0));
  return share < allowed || allowed == 0 ? static_cast<int>(std::min(share, 65536.0)) : allowed;
}

std::string_view to_text(PciePath path) {
  switch (path) {
    case PciePath::kUnknown:
      return "unknown";
    case PciePath::kSameBoard:
      return "same_board";
    case PciePath::kOneSwitch:
      return "one_switch";
    case PciePath::kSwitches:
      return "switches";
    case PciePath::kHostBridge:
      return "host_bridge";
    case PciePath::kSameNuma:
      return "same_numa";
    case PciePath::kCrossNuma:
      return "cross_numa";
  }
  return "unknown";
}

std::string_view to_text(NicKind kind) {
  switch (kind) {
    case NicKind::kEthernet:
      return "ethernet";
    case NicKind::kRoce:
      return "roce";
    case NicKind::kInfiniband:
      return "infiniband";
    case NicKind::kEfa:
      return "efa";
  }
  return "ethernet";
}

std::string_view to_text(GpuSource source) {
  switch (source) {
    case GpuSource::kNone:
      return "none";
    case GpuSource::kPci:
      return "pci";
    case GpuSource::kNvml:
      return "nvml";
  }
  return "none";
}

std::string summary(const Machine& machine) {
  return base::printable(fmt::format("{}, {}, {}", cpu_summary(machine.cpu),
                                     memory_summary(machine), gpu_summary(machine)));
}

Json to_json(const Machine& machine) {
  return {{"hostname", base::or_null(machine.hostname)},
          {"os",
           {{"name", base::or_null(machine.os.name)},
            {"version", base::or_null(machine.os.version)},
            {"kernel", base::or_null(machine.os.kernel)}}},
          {"cpu", cpu_json(machine.cpu)},
          {"memory_bytes", bytes_or_null(machine.memory)},
          {"memory_limit_bytes", base::or_null(machine.memory_limit)},
          {"numa_nodes", array_json(machine.numa_nodes, numa_json)},
          {"gpu_source", to_text(machine.gpu_source)},
          {"gpus", array_json(machine.gpus, gpu_json)},
          {"gpu_links", array_json(machine.gpu_links, link_json)},
          {"nics", array_json(machine.nics, nic_json)},
          {"drivers", drivers_json(machine.drivers)},
          {"notes", machine.notes}};
}

}  // namespace assay::machine
