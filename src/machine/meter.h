// Meter: power and clock of a device, read repeatedly while it computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::machine {

// Unknown values are absent.
struct MeterReading {
  std::optional<double> joules;  // since an arbitrary moment: only differences matter
  std::optional<double> watts;   // now
  std::optional<double> clock_mhz;
  std::optional<std::uint64_t> clock_limits;  // reasons why the clock is limited: NVML's bit mask
  std::optional<std::int64_t> too_hot_ns;     // time throttled by heat, since an arbitrary moment
};

// Clock limits that mean a fault: "too hot", "power brake". Idling and reaching the power limit are
// normal.
std::vector<std::string> throttling_faults(std::uint64_t clock_limits);

class Meter {
 public:
  virtual ~Meter() = default;
  virtual MeterReading read() = 0;
};

// The GPU with this PCI bus id, through NVML, which stays open as long as the meter; null if NVML
// or the GPU is not available.
std::unique_ptr<Meter> gpu_meter(const std::string& pci_bus_id,
                                 const std::string& nvml_library = "libnvidia-ml.so.1");

// The processors' packages, through the kernel's power capping files (RAPL), below `root`; null
// when there are none or they are closed to this user, as they often are.
std::unique_ptr<Meter> processor_meter(const std::string& root = "/");

}  // namespace assay::machine
