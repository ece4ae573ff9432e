// StreamHash: BLAKE3 of a sequence of spans, computed on its own thread while the caller writes the
// same bytes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

#include "hash/digest.h"

namespace assay::checkpoint {

class StreamHash {
 public:
  StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;
  // Discards bytes that were not hashed yet.
  ~StreamHash();

  // The bytes are not copied: they must not change until finish() or destruction.
  void add(std::span<const std::byte> data);
  // Waits for all bytes; call once.
  hash::Digest finish();

 private:
  void hash_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::span<const std::byte>> waiting_;
  bool complete_ = false;   // no more bytes will be added
  bool abandoned_ = false;  // the result is not needed
  hash::Digest digest_;
  std::thread thread_;
};

}  // namespace assay::checkpoint
