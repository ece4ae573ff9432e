// Batches: sends tokens, targets and the beginnings of documents to the device. They are copied
// asynchronously from pinned memory; two slots alternate, so the next micro-batch can be prepared
// while the previous one is still being copied.
//
// An index of where each token occurs is sent along, for the gradient of the embedding:
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
  // Destinations on the device; null: not sent.
  struct Places {
    std::int32_t* tokens = nullptr;
    std::int32_t* targets = nullptr;
    std::int32_t* documents = nullptr;
  };
  // Copies to device memory. A token outside the vocabulary is recorded as a device failure.
  void send(Device& device, const MicroBatch& batch, const Places& to);
  // The index of the tokens that were last sent to this address.
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
  std::map<const void*, TokenIndex> indices_;  // by the device address of the tokens
  std::vector<std::int32_t> ends_;             // while sorting: where each token's positions end
};

}  // namespace assay::train::cuda
