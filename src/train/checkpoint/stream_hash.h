// StreamHash: BLAKE3 of bytes that are handed over one span after the other, on a thread of its
// own, while whoever hands them over writes them.
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
  // What has not been hashed by then never will be.
  ~StreamHash();

  // The bytes are not copied: they stay as they are until finish() or the end of this object.
  void add(std::span<const std::byte> data);
  // Waits for all of them. Once.
  hash::Digest finish();

 private:
  void hash_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::span<const std::byte>> waiting_;
  bool complete_ = false;   // nothing more will be added
  bool abandoned_ = false;  // nobody will ask
  hash::Digest digest_;
  std::thread thread_;
};

}  // namespace assay::checkpoint
