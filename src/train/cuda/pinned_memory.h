// PinnedMemory: host memory that the GPU copies into while it computes. Pinning the many gigabytes
// of a model's state takes seconds, so a thread does it while training starts.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>

#include "base/result.h"

namespace assay::train::cuda {

class PinnedMemory {
 public:
  // The driver is locked during a call, so memory is pinned in pieces and training continues in
  // between. A copy must lie within one piece.
  static constexpr std::size_t kPiece = std::size_t{256} << 20U;

  // Fails if the host does not have this much memory.
  static base::Result<void> check(std::size_t bytes);
  // Starts pinning; fails at once if there is too little memory.
  static base::Result<std::shared_ptr<PinnedMemory>> begin(std::size_t bytes, int device);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  // Blocks until all memory is pinned.
  std::span<std::byte> wait();

 private:
  PinnedMemory(std::byte* data, std::size_t bytes, int device);
  void touch();
  void pin();

  std::byte* data_;
  std::size_t bytes_;
  int device_;
  std::size_t pinned_ = 0;  // bytes from the start
  std::atomic<bool> cancelled_ = false;
  std::thread thread_;
};

}  // namespace assay::train::cuda
