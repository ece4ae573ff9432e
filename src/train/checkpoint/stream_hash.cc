#include "train/checkpoint/stream_hash.h"

#include "hash/blake3.h"

namespace assay::checkpoint {

StreamHash::StreamHash() : thread_([this] { hash_all(); }) {}

StreamHash::~StreamHash() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StreamHash::add(std::span<const std::byte> data) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(data);
  }
  changed_.notify_one();
}

hash::Digest StreamHash::finish() {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
  }
  changed_.notify_one();
  thread_.join();
  return digest_;
}

void StreamHash::hash_all() {
  hash::Hasher hasher;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return abandoned_ || complete_ || !waiting_.empty(); });
    if (abandoned_) return;
    if (waiting_.empty()) break;  // and complete
    const std::span<const std::byte> next = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    hasher.update(next);
    lock.lock();
  }
  digest_ = hasher.finish();
}

}  // namespace assay::checkpoint
