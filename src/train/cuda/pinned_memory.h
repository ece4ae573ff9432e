// PinnedMemory: host memory that the GPU copies into while it computes. Pinning the many gigabytes
// of a model's state blocks the driver for seconds, so a thread does it piece by piece, with
// pauses, while training goes on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "base/result.h"

namespace assay::train::cuda {

class PinnedMemory {
 public:
  // Each call locks the driver, so memory is pinned in pieces and training continues in between. A
  // copy must lie within one piece.
  static constexpr std::size_t kPiece = std::size_t{64} << 20U;

  // Starts pinning; fails at once if there is too little memory.
  static base::Result<std::shared_ptr<PinnedMemory>> begin(std::size_t bytes, int device);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  // Blocks until all memory is pinned; the thread no longer pauses.
  std::span<std::byte> wait();

 private:
  PinnedMemory(std::byte* data, std::size_t bytes, int device);
  void touch();
  void pin();
  void pause(std::chrono::steady_clock::duration time);
  void stop_pausing();

  std::byte* data_;
  std::size_t bytes_;
  int device_;
  std::size_t pinned_ = 0;  // from the start
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::condition_variable pausing_ended_;
  bool no_pauses_ = false;
  std::thread thread_;
};

}  // namespace assay::train::cuda
