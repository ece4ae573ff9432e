#include "train/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "train/host_memory.h"

namespace assay::train::cuda {
namespace {

constexpr std::size_t kPiece = PinnedMemory::kPiece;
constexpr std::size_t kTouchers = 4;
// The pause between two pieces, as a multiple of the time for one: a host that launches GPU work
// waits for the driver meanwhile; it is ahead of the GPU by more than one piece takes, but not by
// all of them. Pinning 60 GiB takes 4 s of driver time, and so half a minute in total.
constexpr int kRest = 8;

}  // namespace

base::Result<std::shared_ptr<PinnedMemory>> PinnedMemory::begin(std::size_t bytes, int device) {
  // Other ranks may have pinned theirs already.
  ASSAY_TRY_VOID(check_snapshots_fit(static_cast<std::int64_t>(bytes), 1, available_host_memory()));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return base::fail(base::system_error(
        "host memory",
        fmt::format("cannot take {}", base::to_text(base::Bytes(static_cast<std::int64_t>(bytes)))),
        errno));
  }
  return std::shared_ptr<PinnedMemory>(
      new PinnedMemory(static_cast<std::byte*>(memory), bytes, device));
}

PinnedMemory::PinnedMemory(std::byte* data, std::size_t bytes, int device)
    : data_(data), bytes_(bytes), device_(device), thread_([this] {
        ::madvise(data_, bytes_, MADV_HUGEPAGE);
        touch();
        pin();
      }) {}

PinnedMemory::~PinnedMemory() {
  cancelled_ = true;
  stop_pausing();
  if (thread_.joinable()) thread_.join();
  for (std::size_t at = 0; at < pinned_; at += kPiece) cudaHostUnregister(data_ + at);
  ::munmap(data_, bytes_);
}

// Touches the pages in parallel: the kernel allocates them on first touch.
void PinnedMemory::touch() {
  constexpr std::size_t kPage = 4096;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kTouchers; ++i) {
    threads.emplace_back([this, i] {
      for (std::size_t at = i * kPiece; at < bytes_ && !cancelled_; at += kTouchers * kPiece) {
        const std::size_t end = std::min(bytes_, at + kPiece);
        for (std::size_t page = at; page < end; page += kPage) data_[page] = std::byte{0};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Memory that cannot be pinned still works, but copies do not overlap computation.
void PinnedMemory::pin() {
  if (cudaSetDevice(device_) != cudaSuccess) return;
  while (pinned_ < bytes_ && !cancelled_) {
    const std::size_t piece = std::min(kPiece, bytes_ - pinned_);
    const auto begun = std::chrono::steady_clock::now();
    if (cudaHostRegister(data_ + pinned_, piece, cudaHostRegisterPortable) != cudaSuccess) return;
    pinned_ += piece;
    pause(kRest * (std::chrono::steady_clock::now() - begun));
  }
}

// Returns early if somebody waits.
void PinnedMemory::pause(std::chrono::steady_clock::duration time) {
  std::unique_lock lock(mutex_);
  pausing_ended_.wait_for(lock, time, [this] { return no_pauses_; });
}

void PinnedMemory::stop_pausing() {
  {
    const std::lock_guard lock(mutex_);
    no_pauses_ = true;
  }
  pausing_ended_.notify_all();
}

std::span<std::byte> PinnedMemory::wait() {
  stop_pausing();
  if (thread_.joinable()) thread_.join();
  return {data_, bytes_};
}

}  // namespace assay::train::cuda
