#include "train/cuda/batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace assay::train::cuda {

Batches::~Batches() {
  for (Slot& slot : slots_) {
    if (slot.numbers != nullptr) cudaFreeHost(slot.numbers);
    if (slot.read != nullptr) cudaEventDestroy(slot.read);
  }
}

base::Result<void> Batches::open(std::int64_t tokens, std::int64_t vocab) {
  tokens_ = tokens;
  vocab_ = vocab;
  ends_.resize(static_cast<std::size_t>(vocab));
  const auto bytes = static_cast<std::size_t>(3 * tokens + index_size(tokens)) * 4;
  for (Slot& slot : slots_) {
    if (cudaHostAlloc(reinterpret_cast<void**>(&slot.numbers), bytes, cudaHostAllocDefault) !=
            cudaSuccess ||
        cudaEventCreateWithFlags(&slot.read, cudaEventDisableTiming) != cudaSuccess) {
      return base::fail(
          base::unfit_error("memory", "pinned memory for batches cannot be allocated"));
    }
  }
  return {};
}

bool Batches::check(Device& device, std::span<const std::int32_t> numbers,
                    bool may_be_negative) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < vocab_ && (may_be_negative || numbers[i] >= 0)) continue;
    device.failed(fmt::format("token {} of the batch is {}, but the vocabulary has {}", i,
                              numbers[i], vocab_));
    return false;
  }
  return true;
}

void Batches::sort(std::span<const std::int32_t> tokens, std::int32_t* index) {
  std::int32_t* order = index;
  std::int32_t* starts = index + tokens_;
  std::int32_t* ids = starts + tokens_ + 1;
  std::fill(ends_.begin(), ends_.end(), 0);
  for (const std::int32_t token : tokens) ++ends_[static_cast<std::size_t>(token)];
  distinct_ = 0;
  std::int32_t at = 0;
  for (std::int64_t token = 0; token < vocab_; ++token) {
    std::int32_t& count = ends_[static_cast<std::size_t>(token)];
    if (count == 0) continue;
    ids[distinct_] = static_cast<std::int32_t>(token);
    starts[distinct_++] = at;
    at += count;
    count = at - count;  // now the index of the token's next position
  }
  starts[distinct_] = at;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    order[ends_[static_cast<std::size_t>(tokens[i])]++] = static_cast<std::int32_t>(i);
  }
}

void Batches::send(Device& device, const MicroBatch& batch, const Places& to) {
  if (to.tokens != nullptr && !check(device, batch.tokens, false)) return;
  if (to.targets != nullptr && !check(device, batch.targets, true)) return;
  Slot& slot = slots_[turn_];
  turn_ = 1 - turn_;
  device.check(cudaEventSynchronize(slot.read), "batch");
  std::int32_t* at = slot.numbers;
  const auto copy = [&](std::int32_t* place, std::int64_t count) {
    device.check(cudaMemcpyAsync(place, at, static_cast<std::size_t>(count) * 4,
                                 cudaMemcpyHostToDevice, device.stream),
                 "batch");
    at += count;
  };
  const auto put = [&](std::int32_t* place, std::span<const std::int32_t> numbers) {
    if (place == nullptr) return;
    std::copy(numbers.begin(), numbers.end(), at);
    copy(place, tokens_);
  };
  put(to.tokens, batch.tokens);
  put(to.targets, batch.targets);
  put(to.documents, batch.documents);
  if (to.tokens != nullptr) {
    sort(batch.tokens, at);
    const auto place =
        static_cast<std::int64_t>(indices_.contains(to.tokens) ? 0 : indices_.size());
    const std::int32_t*& numbers = indices_[to.tokens].numbers;
    if (numbers == nullptr) numbers = device.workspace.token_index + place * index_size(tokens_);
    copy(const_cast<std::int32_t*>(numbers), index_size(tokens_));
    indices_[to.tokens].distinct = distinct_;
  }
  device.check(cudaEventRecord(slot.read, device.stream), "batch");
}

}  // namespace assay::train::cuda
