// What Machine can say about itself without asking the system again.
#include "machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace assay::machine {
namespace {

// Trademark signs and the nominal clock say nothing; the model number does.
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

}  // namespace

int Cpu::usable_threads() const {
  const int allowed = allowed_threads > 0 ? allowed_threads : threads;
  if (!quota_threads) return allowed;
  const double share = std::ceil(std::max(*quota_threads, 1.0));
  return share < allowed || allowed == 0 ? static_cast<int>(std::min(share, 65536.0)) : allowed;
}

const GpuLink* Machine::link_between(int a, int b) const {
  const auto [low, high] = std::minmax(a, b);
  for (const GpuLink& link : gpu_links) {
    if (link.a == low && link.b == high) return &link;
  }
  return nullptr;
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

}  // namespace assay::machine
