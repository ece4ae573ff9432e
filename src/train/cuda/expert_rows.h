// ExpertRows: how many rows each expert of a mixture has, on the host, which launches a product for
// each; and where ranks have different experts, how many rows go to each rank and come from each,
// which whoever sends them needs on the host, too. The device writes the numbers into mapped host
// memory while it sorts; the host reads them when it comes to the first product that needs them.
// Until then it launches ahead, and from there on: rows are gathered meanwhile, so the device is
// not idle.
//
// Numbers belong to the place in device memory where the program has them. They are valid until
// that place is sorted into again: for the products of the backward pass too, and for as many
// layers and micro-batches at once as the program has places.
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

  // Room for every place that the program sorts into, or counts; none if it has no mixtures.
  base::Result<void> open(const step::Program& program);
  // Before the device sorts: where it is to write the numbers of this place. Null is a failure.
  std::int32_t* begin_sort(Device& device, const void* place, std::int64_t numbers);
  // After it was launched.
  void end_sort(Device& device, const void* place);
  // The first rows of experts, and the end; or of counts, their sums by rank. Waits for the device
  // if it has not come that far. Empty is a failure of the device.
  std::span<const std::int32_t> of(Device& device, const void* place);
  // How long of() has waited in all.
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
  std::size_t numbers_ = 0;  // of a place, at most
  std::size_t room_ = 0;     // places
  std::map<const void*, Sorted> sorted_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace assay::train::cuda
