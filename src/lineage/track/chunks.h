// Chunks: a list that never moves its elements and never holds twice its size while it grows, for
// the tracker's tables of a million files. Ids are positions; 0 stands for "none" and is taken by a
// blank element from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace assay::lineage {

template <class T>
class Chunks {
 public:
  Chunks() { add({}); }

  std::uint32_t add(const T& value) {
    if (size_ % kPerChunk == 0) chunks_.push_back(std::make_unique<T[]>(kPerChunk));
    chunks_.back()[size_ % kPerChunk] = value;
    return size_++;
  }
  T& operator[](std::uint32_t id) { return chunks_[id / kPerChunk][id % kPerChunk]; }
  const T& operator[](std::uint32_t id) const { return chunks_[id / kPerChunk][id % kPerChunk]; }
  // One more than the last id.
  [[nodiscard]] std::uint32_t end() const { return size_; }

 private:
  static constexpr std::uint32_t kPerChunk = 1024;

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::uint32_t size_ = 0;
};

}  // namespace assay::lineage
