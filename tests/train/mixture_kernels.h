// What tests of a mixture's kernels share: operands on both sides, and a device with its workspace.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "train/cpu/kernels.h"
#include "train/cuda/grouped_products.h"
#include "train/cuda/kernels.h"
#include "train/cuda/testing/trial.h"
#include "train/float_bits.h"
#include "train/testing/join_master.h"

namespace assay::train::mixture_test {

using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

inline Halves halves_of(const Floats& values) {
  Halves halves;
  for (const float value : values) halves.push_back(split_master(value).high);
  return halves;
}

inline Floats floats_of(const Halves& halves) {
  Floats values;
  for (const std::uint16_t half : halves) values.push_back(join_master({half, 0}));
  return values;
}

// Device memory with a copy of what the host has, or full of NaNs and -1.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  explicit OnDevice(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<std::size_t>(bytes(), 1)),
              cudaSuccess);
    poison();
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  void poison() { EXPECT_EQ(cudaMemset(data_, 0xff, bytes()), cudaSuccess); }
  [[nodiscard]] cuda::Matrix matrix(std::int64_t rows) const {
    const std::int64_t cols = static_cast<std::int64_t>(count_) / rows;
    return {data_, rows, cols, cols};
  }
  [[nodiscard]] std::vector<T> get() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

inline cpu::Matrix on_cpu(Floats& values, std::int64_t rows) {
  const std::int64_t cols = static_cast<std::int64_t>(values.size()) / rows;
  return {values.data(), rows, cols, cols};
}

inline cpu::Integers on_cpu(Ints& values, std::int64_t rows) {
  return {values.data(), rows, static_cast<std::int64_t>(values.size()) / rows};
}

class MixtureKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::testing::gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
    ASSERT_EQ(cudaMalloc(&memory_, kProducts * cuda::kLanes + kRouting), cudaSuccess);
    device_.workspace.products = memory_;
    device_.workspace.products_bytes = kProducts;
    device_.workspace.lanes = static_cast<std::byte*>(memory_) + kProducts;
    device_.workspace.routing = static_cast<std::byte*>(memory_) + kProducts * cuda::kLanes;
  }
  void TearDown() override {
    EXPECT_EQ(device_.failure(), "");
    cudaFree(memory_);
  }

  static constexpr std::int64_t kProducts = std::int64_t{32} << 20U;
  static constexpr std::int64_t kRouting = std::int64_t{8} << 20U;
  void* memory_ = nullptr;
  cuda::Device device_;  // on the default stream
  cpu::Device reference_{2};
};

}  // namespace assay::train::mixture_test
