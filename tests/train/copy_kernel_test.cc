// The kernel that copies between ranks on one GPU: every byte, of any size and alignment, and no
// byte beside them.
#include "comm/cuda/copy_kernel.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "train/cuda/testing/trial.h"

namespace assay::comm {
namespace {

class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<std::byte>& content) : size_(content.size()) {
    EXPECT_EQ(cudaMalloc(&data_, size_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, content.data(), size_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  [[nodiscard]] std::byte* at(std::size_t offset) {
    return static_cast<std::byte*>(data_) + offset;
  }
  [[nodiscard]] std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(size_);
    EXPECT_EQ(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost), cudaSuccess);
    return bytes;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

TEST(CopyKernel, CopiesEveryByteAndNoOther) {
  if (train::cuda::testing::gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  std::mt19937 random(7);
  constexpr std::size_t kMost = std::size_t{9} << 20U;
  std::vector<std::byte> source(kMost);
  for (std::byte& one : source) one = static_cast<std::byte>(random());
  DeviceBytes from(source);
  DeviceBytes to(std::vector<std::byte>(kMost, std::byte{0}));
  std::vector<std::byte> expected(kMost, std::byte{0});
  std::vector<std::size_t> sizes = {0, 1, 15, 16, 17, 2047, 2048, 2049, (8U << 20U) + 6};
  for (int i = 0; i < 40; ++i) sizes.push_back(random() % (std::size_t{1} << (1 + random() % 22)));
  for (const std::size_t size : sizes) {
    // Where a rank's part begins: at multiples of 16 as a rule, at single bytes now and then.
    const std::size_t step = random() % 4 == 0 ? 1 : 16;
    const std::size_t read = random() % 1000 * step;
    const std::size_t written = random() % 1000 * step;
    ASSERT_EQ(copy_beside_kernels(to.at(written), from.at(read), size, nullptr), cudaSuccess);
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(read), size,
                expected.begin() + static_cast<std::ptrdiff_t>(written));
    ASSERT_EQ(to.content() == expected, true)
        << size << " bytes from " << read << " to " << written;
  }
}

}  // namespace
}  // namespace assay::comm
