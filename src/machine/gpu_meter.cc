// See meter.h. Every answer is checked, as in nvml.cc.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "machine/meter.h"
#include "machine/nvml_library.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

// A driver that answers nonsense must not make it into anybody's mean.
constexpr unsigned kMostMilliwatts = 100'000'000;
constexpr unsigned kMostMegahertz = 100'000;
constexpr unsigned kMostDevices = 256;
constexpr unsigned long long kMostLimits = 1ULL << 32U;  // a few low bits are in use

class GpuMeter : public Meter {
 public:
  GpuMeter(nvml::NvmlLibrary library, nvml::Device device)
      : library_(std::move(library)), device_(device) {}

  Reading read() override {
    const nvml::Functions& f = library_.functions();
    Reading reading;
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

// CUDA numbers GPUs in an order of its own, so they are told apart by where they are plugged in.
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

}  // namespace

std::vector<std::string> clock_troubles(std::uint64_t clock_limits) {
  std::vector<std::string> troubles;
  if ((clock_limits & (nvml::kLimitHotSoftware | nvml::kLimitHotHardware)) != 0) {
    troubles.emplace_back("too hot");
  }
  if ((clock_limits & nvml::kLimitPowerBrake) != 0) troubles.emplace_back("power brake");
  // The hardware's own word for either of the above, or for neither.
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

}  // namespace assay::machine
