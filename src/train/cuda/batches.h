// Batches: tokens and targets on their way to the device. They are copied from pinned memory while
// the host goes on; two slots take turns, so the next micro-batch can be laid out while the last
// one is still being read.
//
// With them travels, for the gradient of the embedding, where in the batch each token stands:
//   order   the positions of the batch, sorted by token, those of a token in their own order
//   starts  where in `order` the positions of each distinct token begin, and where the last ones
//   end ids     the distinct tokens
// as 3 x tokens + 1 numbers, `order` first (`starts` begins at tokens, `ids` at 2 x tokens + 1).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/cuda/device.h"

namespace assay::train::cuda {

class Batches {
 public:
  Batches() = default;
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  ~Batches();

  static std::int64_t place_numbers(std::int64_t tokens) { return 3 * tokens + 1; }

  base::Result<void> open(std::int64_t tokens, std::int64_t vocab);
  // Into the device's memory. A token outside the vocabulary is a failure of the device.
  void send(Device& device, std::span<const std::int32_t> tokens,
            std::span<const std::int32_t> targets, std::int32_t* device_tokens,
            std::int32_t* device_targets);
  // Of the batch that was sent last.
  [[nodiscard]] std::int64_t distinct() const { return distinct_; }

 private:
  struct Slot {
    std::int32_t* numbers = nullptr;  // tokens, targets, places
    cudaEvent_t read = nullptr;       // the device has read it
  };
  bool check(Device& device, std::span<const std::int32_t> numbers, bool may_be_negative) const;
  void sort(std::span<const std::int32_t> tokens, std::int32_t* places);

  Slot slots_[2];
  int turn_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t vocab_ = 0;
  std::int64_t distinct_ = 0;
  std::vector<std::int32_t> ends_;  // of each token's positions, while sorting
};

}  // namespace assay::train::cuda
