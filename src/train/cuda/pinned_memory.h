// PinnedMemory: host memory that the GPU copies into while it computes. A model's state takes many
// gigabytes of it, which take seconds to get, so a thread of its own gets them while training
// begins.
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
  // The driver is ours for the time of one call, so memory is pinned in pieces: training goes on
  // between. A copy must lie within one of them.
  static constexpr std::size_t kPiece = std::size_t{256} << 20U;

  // Whether the host has as much.
  static base::Result<void> check(std::size_t bytes);
  // Fails at once where it has not.
  static base::Result<std::shared_ptr<PinnedMemory>> begin(std::size_t bytes, int device);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  // When it is there.
  std::span<std::byte> wait();

 private:
  PinnedMemory(std::byte* data, std::size_t bytes, int device);
  void touch();
  void pin();

  std::byte* data_;
  std::size_t bytes_;
  int device_;
  std::size_t pinned_ = 0;  // bytes from the start
  std::atomic<bool> unwanted_ = false;
  std::thread thread_;
};

}  // namespace assay::train::cuda
