// ExpertRows: tells the host how many rows each expert of a mixture has, because the host launches
// one product per expert; and with expert parallelism, how many rows are sent to and received from
// each rank, which the host needs for the all-to-all. The device writes these numbers into mapped
// host memory while it sorts, and the host reads them when it reaches the first product that needs
// them. The host runs ahead of the device before and after that, and the device gathers rows
// meanwhile, so it is not idle.
//
// The numbers are identified by the device address at which the program stores them, and are valid
// until the program sorts into that address again. So they also serve the backward pass, and any
// number of layers and micro-batches that have different addresses.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "step/program.h"
#include "train/cuda/device.h"

namespace assay::train::cuda {

class ExpertRows {
 public:
  ExpertRows() = default;
  ExpertRows(const ExpertRows&) = delete;
  ExpertRows& operator=(const ExpertRows&) = delete;
  ~ExpertRows();

  // Reserves room for every address that the program sorts or counts into; none without mixtures.
  base::Result<void> open(const step::Program& program);
  // Call before launching the sort; returns where the device must write the numbers for this
  // address. Null: it failed.
  std::int32_t* begin_sort(Device& device, const void* place, std::int64_t numbers);
  // Call after launching the sort.
  void end_sort(Device& device, const void* place);
  // The first row of each expert followed by the end or, for counts, their sums per rank. Waits for
  // the device if necessary. Empty: the device failed.
  std::span<const std::int32_t> of(Device& device, const void* place);
  // Total time that of() has waited.
  [[nodiscard]] std::chrono::nanoseconds waited() const { return waited_; }

 private:
  struct Sorted {
    std::int32_t* on_host = nullptr;
    cudaEvent_t written = nullptr;
    std::size_t numbers = 0;
    bool is_read = false;
    std::vector<std::int32_t> rows;
  };
  bool wait(Device& device, const Sorted& sorted);

  std::int32_t* pinned_ = nullptr;
  std::size_t numbers_ = 0;  // maximum per address
  std::size_t room_ = 0;     // addresses
  std::map<const void*, Sorted> sorted_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace assay::train::cuda
