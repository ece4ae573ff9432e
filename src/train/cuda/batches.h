// Batches: sends tokens, targets and where documents begin to the device. They are copied from
// pinned memory asynchronously; two slots alternate, so the next micro-batch can be prepared while
// the last is still being copied.
//
// With them goes, for the gradient of the embedding, the index of where each token occurs:
//   order   the positions of the batch, sorted by token, stable
//   starts  where in `order` the positions of each distinct token start, and the end of the last
//   ids     the distinct tokens
// as 3 x tokens + 1 numbers: `order` at 0, `starts` at tokens, `ids` at 2 x tokens + 1.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/cuda/device.h"
#include "train/micro_batch.h"

namespace assay::train::cuda {

// Where each token of a micro-batch occurs, on the device.
struct TokenIndex {
  const std::int32_t* numbers = nullptr;
  std::int64_t distinct = 0;
};

class Batches {
 public:
  Batches() = default;
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  ~Batches();

  static std::int64_t index_size(std::int64_t tokens) { return 3 * tokens + 1; }

  base::Result<void> open(std::int64_t tokens, std::int64_t vocab);
  // Where they go; null: they are not sent.
  struct Places {
    std::int32_t* tokens = nullptr;
    std::int32_t* targets = nullptr;
    std::int32_t* documents = nullptr;
  };
  // Copies to device memory. A token outside the vocabulary is reported as a failure of the device.
  void send(Device& device, const MicroBatch& batch, const Places& to);
  // Of the tokens at this place, as they were sent last.
  [[nodiscard]] TokenIndex index_of(const void* device_tokens) const {
    return indices_.at(device_tokens);
  }

 private:
  struct Slot {
    std::int32_t* numbers = nullptr;  // tokens, targets, documents, index
    cudaEvent_t read = nullptr;       // recorded when the device has read it
  };
  bool check(Device& device, std::span<const std::int32_t> numbers, bool may_be_negative) const;
  void sort(std::span<const std::int32_t> tokens, std::int32_t* index);

  Slot slots_[2];
  int turn_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t vocab_ = 0;
  std::int64_t distinct_ = 0;
  std::map<const void*, TokenIndex> indices_;  // by the tokens' place
  std::vector<std::int32_t> ends_;             // end of each token's positions, while sorting
};

}  // namespace assay::train::cuda
