// Calls on device memory, for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "comm/testing/random_calls.h"

namespace assay::comm::testing {

class DeviceMemoryOfCalls : public CallMemory {
 public:
  DeviceMemoryOfCalls() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~DeviceMemoryOfCalls() override {
    DeviceMemoryOfCalls::clear();
    cudaStreamDestroy(stream_);
  }
  std::byte* place(const Bytes& bytes) override {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes.size() + 1), cudaSuccess);
    placed_.push_back(memory);
    // Queued on the stream, so that calls have something to wait for.
    cudaMemcpyAsync(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_);
    return static_cast<std::byte*>(memory);
  }
  Bytes fetch(const std::byte* from, std::size_t bytes) override {
    Bytes fetched(bytes);
    cudaMemcpyAsync(fetched.data(), from, bytes, cudaMemcpyDeviceToHost, stream_);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return fetched;
  }
  void clear() override {
    cudaStreamSynchronize(stream_);
    for (void* memory : placed_) cudaFree(memory);
    placed_.clear();
  }
  Stream stream() override { return {stream_}; }
  [[nodiscard]] bool only_neighbours() const override { return true; }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> placed_;
};

// An all-gather, with its results fetched and checked on the host.
inline base::Result<void> gather(Communicator& c, CallMemory& memory, std::size_t count) {
  const Bytes mine(count, std::byte(c.rank() + 1));
  const std::size_t size = count * static_cast<std::size_t>(c.ranks());
  std::byte* const to = memory.place(Bytes(size, kUntouched));
  ASSAY_TRY_VOID(c.all_gather(memory.place(mine), to, static_cast<std::int64_t>(count),
                              ElementType::kU8, memory.stream()));
  const Bytes all = memory.fetch(to, size);
  ASSAY_TRY_VOID(c.check());
  memory.clear();
  if (all.front() == std::byte(1) && all.back() == std::byte(c.ranks())) return {};
  return base::fail(base::failed_error("all_gather", "wrong bytes"));
}

}  // namespace assay::comm::testing
