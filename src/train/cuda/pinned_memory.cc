#include "train/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "train/host_memory.h"

namespace assay::train::cuda {
namespace {

constexpr std::size_t kPiece = PinnedMemory::kPiece;
constexpr std::size_t kTouchers = 4;
// Left to everybody else.
constexpr std::int64_t kSpare = std::int64_t{1} << 30U;

// The kernel gives pages when they are first touched, one thread's worth at a time.
void touch(std::byte* data, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kTouchers; ++i) {
    threads.emplace_back([=] {
      for (std::size_t at = i * kPiece; at < bytes; at += kTouchers * kPiece) {
        const std::size_t end = std::min(bytes, at + kPiece);
        for (std::size_t page = at; page < end; page += kPage) data[page] = std::byte{0};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

base::Result<std::shared_ptr<PinnedMemory>> PinnedMemory::begin(std::size_t bytes, int device) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  const std::int64_t unused = unused_host_memory();
  void* memory = MAP_FAILED;
  if (wanted + kSpare <= unused) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return base::fail(base::unfit_error(
        "host memory",
        fmt::format("a checkpoint passes through {} of it, but {} are there",
                    base::to_text(base::Bytes(wanted)), base::to_text(base::Bytes(unused))),
        "train a smaller model, or on a host with more memory"));
  }
  return std::shared_ptr<PinnedMemory>(
      new PinnedMemory(static_cast<std::byte*>(memory), bytes, device));
}

PinnedMemory::PinnedMemory(std::byte* data, std::size_t bytes, int device)
    : data_(data), bytes_(bytes), device_(device), thread_([this] {
        ::madvise(data_, bytes_, MADV_HUGEPAGE);
        touch(data_, bytes_);
        pin();
      }) {}

PinnedMemory::~PinnedMemory() {
  if (thread_.joinable()) thread_.join();
  for (std::size_t at = 0; at < pinned_; at += kPiece) cudaHostUnregister(data_ + at);
  ::munmap(data_, bytes_);
}

// What cannot be pinned is copied to all the same, only not while the GPU computes.
void PinnedMemory::pin() {
  if (cudaSetDevice(device_) != cudaSuccess) return;
  while (pinned_ < bytes_) {
    const std::size_t piece = std::min(kPiece, bytes_ - pinned_);
    if (cudaHostRegister(data_ + pinned_, piece, cudaHostRegisterPortable) != cudaSuccess) return;
    pinned_ += piece;
  }
}

std::span<std::byte> PinnedMemory::wait() {
  if (thread_.joinable()) thread_.join();
  return {data_, bytes_};
}

}  // namespace assay::train::cuda
