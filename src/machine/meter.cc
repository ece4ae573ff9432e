// The two meters: a GPU through NVML, where every answer is checked as in nvml.cc, and the
// processors through RAPL.
#include "machine/meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/unique_fd.h"
#include "machine/file_tree.h"
#include "machine/nvml_library.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

// Larger answers of a driver are ignored.
constexpr unsigned kMostMilliwatts = 100'000'000;
constexpr unsigned kMostMegahertz = 100'000;
constexpr unsigned kMostDevices = 256;
constexpr unsigned long long kMostLimits = 1ULL << 32U;  // a few low bits are in use

class GpuMeter : public Meter {
 public:
  GpuMeter(nvml::NvmlLibrary library, nvml::Device device)
      : library_(std::move(library)), device_(device) {}

  MeterReading read() override {
    const nvml::Functions& f = library_.functions();
    MeterReading reading;
    unsigned long long millijoules = 0;
    if (nvml::call(f.total_energy, device_, &millijoules) == nvml::kSuccess &&
        millijoules < std::numeric_limits<std::int64_t>::max()) {
      reading.joules = static_cast<double>(millijoules) / 1e3;
    }
    unsigned milliwatts = 0;
    if (nvml::call(f.power_usage, device_, &milliwatts) == nvml::kSuccess &&
        milliwatts < kMostMilliwatts) {
      reading.watts = milliwatts / 1e3;
    }
    unsigned megahertz = 0;
    if (nvml::call(f.clock_info, device_, nvml::kClockSm, &megahertz) == nvml::kSuccess &&
        megahertz < kMostMegahertz) {
      reading.clock_mhz = megahertz;
    }
    unsigned long long limits = 0;
    if (nvml::call(f.clock_limits, device_, &limits) == nvml::kSuccess && limits < kMostLimits) {
      reading.clock_limits = limits;
    }
    nvml::ViolationTime hot{};
    if (nvml::call(f.violation, device_, nvml::kPolicyThermal, &hot) == nvml::kSuccess &&
        hot.violated_ns < std::numeric_limits<std::int64_t>::max()) {
      reading.too_hot_ns = static_cast<std::int64_t>(hot.violated_ns);
    }
    return reading;
  }

 private:
  nvml::NvmlLibrary library_;
  nvml::Device device_;
};

// CUDA numbers GPUs in a different order, so they are identified by their bus id.
nvml::Device device_at(const nvml::Functions& f, const std::string& bus_id) {
  unsigned count = 0;
  if (f.device_count(&count) != nvml::kSuccess) return nullptr;
  for (unsigned index = 0; index < std::min(count, kMostDevices); ++index) {
    nvml::Device device = nullptr;
    nvml::PciInfo info{};
    if (f.device_by_index(index, &device) != nvml::kSuccess ||
        nvml::call(f.pci_info, device, &info) != nvml::kSuccess) {
      continue;
    }
    info.bus_id[sizeof info.bus_id - 1] = '\0';
    if (sysfs_bus_id(info.bus_id) == bus_id) return device;
  }
  return nullptr;
}

constexpr const char* kZones = "/sys/class/powercap/";

std::optional<std::uint64_t> whole_number(const FileTree& tree, const std::string& path) {
  const auto text = tree.read(path);
  return text ? base::parse_number<std::uint64_t>(*text) : std::nullopt;
}

// "intel-rapl:0" (on AMD too) is a whole zone; "intel-rapl:0:1" is a part of it, and
// "intel-rapl-mmio:0" the same package through another interface.
bool is_whole_zone(const std::string& name) {
  return name.starts_with("intel-rapl:") && name.find(':') == name.rfind(':');
}

// The file is kept open: it is read ten times a second, and in a traced program every open is
// stopped.
std::optional<std::uint64_t> counter_now(const base::UniqueFd& counter) {
  char text[32];
  const ssize_t size = ::pread(counter.get(), text, sizeof text, 0);
  std::uint64_t value = 0;
  if (size <= 0 || std::from_chars(text, text + size, value).ec != std::errc{}) return std::nullopt;
  return value;
}

struct Zone {
  base::UniqueFd counter;
  std::uint64_t wraps_at = 0;
  std::uint64_t last = 0;
};

class ProcessorMeter : public Meter {
 public:
  explicit ProcessorMeter(std::vector<Zone> zones) : zones_(std::move(zones)) {}

  MeterReading read() override {
    for (Zone& zone : zones_) {
      const auto now = counter_now(zone.counter);
      if (!now) return {};
      const std::uint64_t used =
          *now >= zone.last ? *now - zone.last : zone.wraps_at - zone.last + *now;
      microjoules_ += used;
      zone.last = *now;
    }
    return {.joules = static_cast<double>(microjoules_) / 1e6};
  }

 private:
  std::vector<Zone> zones_;
  std::uint64_t microjoules_ = 0;
};

}  // namespace

std::vector<std::string> throttling_faults(std::uint64_t clock_limits) {
  std::vector<std::string> troubles;
  if ((clock_limits & (nvml::kLimitHotSoftware | nvml::kLimitHotHardware)) != 0) {
    troubles.emplace_back("too hot");
  }
  if ((clock_limits & nvml::kLimitPowerBrake) != 0) troubles.emplace_back("power brake");
  // The hardware sets this bit for either of the above, or for neither.
  if (troubles.empty() && (clock_limits & nvml::kLimitHardware) != 0) {
    troubles.emplace_back("slowed down by the hardware");
  }
  return troubles;
}

std::unique_ptr<Meter> gpu_meter(const std::string& pci_bus_id, const std::string& nvml_library) {
  const std::string bus_id = sysfs_bus_id(pci_bus_id);
  if (bus_id.empty()) return nullptr;
  auto library = nvml::NvmlLibrary::open(nvml_library);
  if (!library) return nullptr;
  const nvml::Device device = device_at(library->functions(), bus_id);
  if (device == nullptr) return nullptr;
  return std::make_unique<GpuMeter>(*std::move(library), device);
}

std::unique_ptr<Meter> processor_meter(const std::string& root) {
  const FileTree tree(root);
  std::vector<Zone> zones;
  for (const std::string& name : tree.list(kZones)) {
    const std::string folder = kZones + name;
    // "psys" would count the packages once more.
    if (!is_whole_zone(name) || !tree.read(folder + "/name").value_or("").starts_with("package")) {
      continue;
    }
    base::UniqueFd counter(
        ::open((root + folder + "/energy_uj").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!counter.valid()) return nullptr;
    const auto now = counter_now(counter);
    const auto range = whole_number(tree, folder + "/max_energy_range_uj");
    if (!now || !range || *now > *range) return nullptr;
    zones.push_back({std::move(counter), *range, *now});
  }
  if (zones.empty()) return nullptr;
  return std::make_unique<ProcessorMeter>(std::move(zones));
}

}  // namespace assay::machine
