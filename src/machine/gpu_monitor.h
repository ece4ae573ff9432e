// GpuMonitor: the driver's GPUs, each MIG slice as a separate device, and their current activity.
// NVML stays open as long as this object exists. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace assay::machine {

// A card, or a slice of one.
struct GpuName {
  int index = 0;             // of the card, as in NVML and nvidia-smi
  std::optional<int> slice;  // index of the slice on its card, from 0; none: the card itself
  bool sliced = false;       // a card partitioned into slices: CUDA sees only the slices
  std::string uuid;          // "GPU-…", "MIG-…"
  std::string old_id;        // for a slice: "MIG-GPU-…/1/0", the name used by drivers before 470
  std::string name;          // "NVIDIA H200"
  std::optional<base::Bytes> memory;
};

// "0", "0.1"
std::string short_name(const GpuName& gpu);

// Unknown values are absent. Percentages and rates are means since the last sample.
struct GpuActivity {
  std::optional<base::Bytes> memory_used;
  std::optional<double> busy_percent;  // share of time in which at least one kernel ran
  std::optional<double> watts;
  std::optional<double> clock_mhz;
  std::optional<double> sm_percent;  // this and the next three: Hopper and later
  std::optional<double> occupancy_percent;
  std::optional<double> tensor_percent;
  std::optional<double> dram_percent;
  std::optional<base::BytesPerSecond> pcie_sent;
  std::optional<base::BytesPerSecond> pcie_received;
  std::optional<base::BytesPerSecond> nvlink_sent;
  std::optional<base::BytesPerSecond> nvlink_received;
};

class GpuMonitor {
 public:
  // The error says why NVML cannot be used; a GPU that does not answer is left out.
  static base::Result<GpuMonitor> open(const std::string& nvml_library = "libnvidia-ml.so.1");
  GpuMonitor(GpuMonitor&& other) noexcept;
  GpuMonitor& operator=(GpuMonitor&&) = delete;
  ~GpuMonitor();

  // Cards in the order of the bus, each followed by its slices.
  [[nodiscard]] const std::vector<GpuName>& gpus() const;
  // One per element of gpus(), in the same order.
  std::vector<GpuActivity> sample();

 private:
  struct State;
  explicit GpuMonitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay::machine
