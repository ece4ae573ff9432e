// See gpu_monitor.h. Every answer is checked, as in nvml.cc.
#include "machine/gpu_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "machine/nvml_library.h"

namespace assay::machine {
namespace {

constexpr unsigned kMostCards = 256;
constexpr unsigned kMostSlices = 16;
constexpr unsigned kMostWatts = 100'000;
constexpr unsigned kMostClock = 100'000;
constexpr double kMostRate = 1e14;                 // bytes per second
constexpr unsigned kMostPcieRate = 1'000'000'000;  // kilobytes per second
constexpr double kMebi = 1024.0 * 1024.0;

using nvml::call;
using nvml::kSuccess;

std::string text_from(nvml::Function<nvml::Device, char*, unsigned> function, nvml::Device device) {
  std::array<char, 128> buffer{};
  if (call(function, device, buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != kSuccess) {
    return {};
  }
  buffer.back() = '\0';
  return buffer.data();
}

std::optional<base::Bytes> bytes_from(unsigned long long value) {
  if (value > static_cast<unsigned long long>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return base::Bytes(static_cast<std::int64_t>(value));
}

std::optional<double> percent(const nvml::GpmMetric& metric) {
  if (metric.result != kSuccess || !std::isfinite(metric.value) || metric.value < 0) {
    return std::nullopt;
  }
  return std::min(metric.value, 100.0);
}

std::optional<base::BytesPerSecond> rate(const nvml::GpmMetric& metric) {
  const double value = metric.value * kMebi;
  if (metric.result != kSuccess || !(value >= 0 && value < kMostRate)) return std::nullopt;
  return base::BytesPerSecond(value);
}

}  // namespace

struct GpuMonitor::State {
  // A watched device: the driver's handles, and the last sample of its counters.
  struct MonitoredGpu {
    nvml::Device device = nullptr;
    nvml::Device card = nullptr;
    std::optional<unsigned> instance;  // of a slice
    bool gpm = false;
    std::array<nvml::GpmSample, 2> samples{};
    bool sampled = false;
  };

  explicit State(nvml::NvmlLibrary opened) : library(std::move(opened)) {}
  State(const State&) = delete;
  ~State() {
    for (const MonitoredGpu& one : monitored) {
      for (const nvml::GpmSample sample : one.samples) {
        if (sample != nullptr) call(library.functions().gpm_sample_free, sample);
      }
    }
  }

  void add(nvml::Device device, GpuName name, nvml::Device card, std::optional<unsigned> instance);
  void add_gpu(unsigned index, nvml::Device card);
  void sample_counters(MonitoredGpu& one, GpuActivity& activity);
  GpuActivity sample_one(MonitoredGpu& one);

  nvml::NvmlLibrary library;
  std::vector<GpuName> names;
  std::vector<MonitoredGpu> monitored;
  nvml::GpmMetrics metrics{};  // large, so not on the stack
};

void GpuMonitor::State::add(nvml::Device device, GpuName name, nvml::Device card,
                            std::optional<unsigned> instance) {
  const nvml::Functions& f = library.functions();
  name.uuid = text_from(f.uuid, device);
  name.name = text_from(f.name, device);
  nvml::Memory memory{};
  if (call(f.memory_info, device, &memory) == kSuccess && memory.total > 0) {
    name.memory = bytes_from(memory.total);
  }
  MonitoredGpu one{.device = device, .card = card, .instance = instance};
  nvml::GpmSupport support{.version = nvml::kGpmVersion, .supported = 0};
  // The counters of a card that is partitioned into slices are not useful.
  if (!name.sliced && f.gpm_metrics != nullptr && call(f.gpm_support, card, &support) == kSuccess &&
      support.supported == 1) {
    one.gpm = true;
    for (nvml::GpmSample& sample : one.samples) {
      one.gpm = one.gpm && call(f.gpm_sample_make, &sample) == kSuccess && sample != nullptr;
    }
  }
  names.push_back(std::move(name));
  monitored.push_back(one);
}

void GpuMonitor::State::add_gpu(unsigned index, nvml::Device card) {
  const nvml::Functions& f = library.functions();
  unsigned mode = 0;
  unsigned later = 0;
  GpuName name{.index = static_cast<int>(index)};
  name.sliced = call(f.mig_mode, card, &mode, &later) == kSuccess && mode == nvml::kMigEnabled;
  const bool sliced = name.sliced;
  add(card, std::move(name), card, std::nullopt);
  unsigned most = 0;
  if (!sliced || call(f.max_slices, card, &most) != kSuccess) return;
  const std::string card_uuid = names.back().uuid;
  for (unsigned i = 0; i < std::min(most, kMostSlices); ++i) {
    nvml::Device slice = nullptr;
    if (call(f.slice_by_index, card, i, &slice) != kSuccess || slice == nullptr) continue;
    GpuName part{.index = static_cast<int>(index), .slice = static_cast<int>(i)};
    unsigned gpu = 0;
    unsigned compute = 0;
    std::optional<unsigned> instance;
    if (call(f.gpu_instance, slice, &gpu) == kSuccess) {
      instance = gpu;
      if (call(f.compute_instance, slice, &compute) == kSuccess) {
        part.old_id = fmt::format("MIG-{}/{}/{}", card_uuid, gpu, compute);
      }
    }
    add(slice, std::move(part), card, instance);
  }
}

void GpuMonitor::State::sample_counters(MonitoredGpu& one, GpuActivity& activity) {
  const nvml::Functions& f = library.functions();
  auto& [before, now] = one.samples;
  const nvml::Return taken = one.instance ? call(f.gpm_slice_sample, one.card, *one.instance, now)
                                          : call(f.gpm_sample, one.device, now);
  if (taken != kSuccess) return;
  if (one.sampled) {
    constexpr std::array kIds = {
        nvml::kGpmSm,       nvml::kGpmOccupancy,    nvml::kGpmTensor,     nvml::kGpmDram,
        nvml::kGpmPcieSent, nvml::kGpmPcieReceived, nvml::kGpmNvlinkSent, nvml::kGpmNvlinkReceived};
    metrics.version = nvml::kGpmVersion;
    metrics.count = kIds.size();
    metrics.before = before;
    metrics.after = now;
    for (std::size_t i = 0; i < kIds.size(); ++i) metrics.metrics[i] = {.id = kIds[i]};
    if (call(f.gpm_metrics, &metrics) == kSuccess) {
      const auto& m = metrics.metrics;
      activity.sm_percent = percent(m[0]);
      activity.occupancy_percent = percent(m[1]);
      activity.tensor_percent = percent(m[2]);
      activity.dram_percent = percent(m[3]);
      activity.pcie_sent = rate(m[4]);
      activity.pcie_received = rate(m[5]);
      activity.nvlink_sent = rate(m[6]);
      activity.nvlink_received = rate(m[7]);
    }
  }
  one.sampled = true;
  std::swap(before, now);
}

GpuActivity GpuMonitor::State::sample_one(MonitoredGpu& one) {
  const nvml::Functions& f = library.functions();
  GpuActivity activity;
  nvml::Memory memory{};
  if (call(f.memory_info, one.device, &memory) == kSuccess) {
    activity.memory_used = bytes_from(memory.used);
  }
  nvml::Utilization use{};
  if (call(f.utilization, one.device, &use) == kSuccess && use.gpu <= 100) {
    activity.busy_percent = use.gpu;
  }
  unsigned number = 0;
  // Slices have neither watts nor clocks of their own.
  if (!one.instance && call(f.power_usage, one.device, &number) == kSuccess &&
      number / 1000 < kMostWatts) {
    activity.watts = number / 1e3;
  }
  if (!one.instance && call(f.clock_info, one.device, nvml::kClockSm, &number) == kSuccess &&
      number < kMostClock) {
    activity.clock_mhz = number;
  }
  if (one.gpm) {
    sample_counters(one, activity);
  } else if (!one.instance) {
    if (call(f.pcie_throughput, one.device, nvml::kPcieSent, &number) == kSuccess &&
        number < kMostPcieRate) {
      activity.pcie_sent = base::BytesPerSecond(number * 1e3);
    }
    if (call(f.pcie_throughput, one.device, nvml::kPcieReceived, &number) == kSuccess &&
        number < kMostPcieRate) {
      activity.pcie_received = base::BytesPerSecond(number * 1e3);
    }
  }
  return activity;
}

std::string short_name(const GpuName& gpu) {
  return gpu.slice ? fmt::format("{}.{}", gpu.index, *gpu.slice) : fmt::format("{}", gpu.index);
}

GpuMonitor::GpuMonitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuMonitor::GpuMonitor(GpuMonitor&& other) noexcept = default;
GpuMonitor::~GpuMonitor() = default;

base::Result<GpuMonitor> GpuMonitor::open(const std::string& nvml_library) {
  ASSAY_TRY(nvml::NvmlLibrary library, nvml::NvmlLibrary::open(nvml_library));
  auto state = std::make_unique<State>(std::move(library));
  const nvml::Functions& f = state->library.functions();
  unsigned count = 0;
  if (const nvml::Return result = f.device_count(&count); result != kSuccess) {
    return base::fail(base::unfit_error(
        nvml_library,
        fmt::format("NVML cannot count the GPUs: {}", state->library.error_text(result))));
  }
  for (unsigned index = 0; index < std::min(count, kMostCards); ++index) {
    nvml::Device card = nullptr;
    if (f.device_by_index(index, &card) == kSuccess) state->add_gpu(index, card);
  }
  return GpuMonitor(std::move(state));
}

const std::vector<GpuName>& GpuMonitor::gpus() const {
  return state_->names;
}

std::vector<GpuActivity> GpuMonitor::sample() {
  std::vector<GpuActivity> activities;
  activities.reserve(state_->monitored.size());
  for (State::MonitoredGpu& one : state_->monitored) activities.push_back(state_->sample_one(one));
  return activities;
}

}  // namespace assay::machine
