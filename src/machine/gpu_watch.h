// GpuWatch: the GPUs that the driver knows, slices (MIG) each by itself, and what they do right
// now. NVML stays open as long as this lives. Not for several threads at once.
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
  int index = 0;             // of the card, as NVML and nvidia-smi count
  std::optional<int> slice;  // which of the card's, from 0; none: the card itself
  bool sliced = false;       // a card in slices: CUDA has those, not the card
  std::string uuid;          // "GPU-…", "MIG-…"
  std::string old_id;        // of a slice: "MIG-GPU-…/1/0", as drivers before 470 named it
  std::string name;          // "NVIDIA H200"
  std::optional<base::Bytes> memory;
};

// "0", "0.1"
std::string short_name(const GpuName& gpu);

// Unknown values are absent. Percentages and rates are means since the last sample.
struct GpuActivity {
  std::optional<base::Bytes> memory_used;
  std::optional<double> busy_percent;  // some kernel ran
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

class GpuWatch {
 public:
  // The error says why NVML cannot be used; a GPU that does not answer is left out.
  static base::Result<GpuWatch> open(const std::string& nvml_library = "libnvidia-ml.so.1");
  GpuWatch(GpuWatch&& other) noexcept;
  GpuWatch& operator=(GpuWatch&&) = delete;
  ~GpuWatch();

  // Cards in the order of the bus, each followed by its slices.
  [[nodiscard]] const std::vector<GpuName>& gpus() const;
  // As many, in the same order.
  std::vector<GpuActivity> sample();

 private:
  struct State;
  explicit GpuWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay::machine
