// Meter: what a device draws and how fast it runs, asked again and again while it computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::machine {

// What is not told is not there.
struct Reading {
  std::optional<double> joules;  // used since some moment: differences mean something
  std::optional<double> watts;   // now
  std::optional<double> clock_mhz;
  std::optional<std::uint64_t> clock_limits;  // why it runs no faster, as NVML's bits
  std::optional<std::int64_t> too_hot_ns;     // slowed down for heat, since some moment
};

// Those of them that say something is wrong: "too hot", "power brake". A card that idles, or that
// has reached the power it is allowed, is as it should be.
std::vector<std::string> clock_troubles(std::uint64_t clock_limits);

class Meter {
 public:
  virtual ~Meter() = default;
  virtual Reading read() = 0;
};

// The GPU with this PCI bus id, through NVML, which stays open as long as the meter; null when it
// cannot be asked.
std::unique_ptr<Meter> gpu_meter(const std::string& pci_bus_id,
                                 const std::string& nvml_library = "libnvidia-ml.so.1");

// The processors' packages, through the kernel's power capping files (RAPL), below `root`; null
// when there are none or they are closed to this user, as they often are.
std::unique_ptr<Meter> processor_meter(const std::string& root = "/");

}  // namespace assay::machine
