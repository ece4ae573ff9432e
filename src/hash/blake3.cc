// The streaming hasher: a stack of finished subtrees whose sizes are the binary digits of the
// number of chunks so far. Input is held back until more follows it, because the last compression
// of the last subtree depends on whether it is the root.
#include "hash/blake3.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "hash/segments.h"

namespace assay::hash {
namespace {

constexpr std::size_t kPendingChunks = 16;  // fills the lanes of the widest kernel
constexpr std::size_t kPendingBytes = kPendingChunks * kChunkBytes;
constexpr std::uint64_t kMostChunks = 1024;  // at once: bounds the memory for chaining values

class Memory : public SegmentSource {
 public:
  explicit Memory(std::span<const std::byte> data) : data_(data) {}
  base::Result<std::size_t> feed(Subtree& subtree, std::uint64_t offset,
                                 std::size_t length) const override {
    subtree.add(data_.subspan(offset, length));
    return length;
  }

 private:
  std::span<const std::byte> data_;
};

}  // namespace

Hasher::Hasher(const Kernel& kernel) : kernel_(&kernel), subtree_(kernel) {
  pending_.reserve(kPendingBytes);
}

// A power of two of chunks that starts at a multiple of itself, and is not the end of the input.
void Hasher::add_subtree(std::span<const std::byte> data) {
  const std::uint64_t chunks = data.size() / kChunkBytes;
  subtree_.begin(chunks_, chunks);
  subtree_.add(data);
  ChainingValue value = subtree_.finish().chaining_value();
  chunks_ += chunks;
  for (std::uint64_t size = chunks; (chunks_ & size) == 0; size *= 2) {
    value = parent_node(stack_.back(), value).chaining_value();
    stack_.pop_back();
  }
  stack_.push_back(value);
}

void Hasher::update(std::span<const std::byte> data) {
  while (!data.empty()) {
    if (pending_.size() == kPendingBytes) {
      add_subtree(pending_);
      pending_.clear();
    }
    if (pending_.empty()) {
      // Hashes as much as possible in place; at least one byte stays pending.
      while (data.size() > kPendingBytes) {
        std::uint64_t chunks =
            std::min<std::uint64_t>(std::bit_floor((data.size() - 1) / kChunkBytes), kMostChunks);
        if (chunks_ != 0) chunks = std::min(chunks, chunks_ & (~chunks_ + 1));
        add_subtree(data.first(chunks * kChunkBytes));
        data = data.subspan(chunks * kChunkBytes);
      }
    }
    const std::size_t now = std::min(data.size(), kPendingBytes - pending_.size());
    pending_.insert(pending_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(now));
    data = data.subspan(now);
  }
}

Digest Hasher::finish() const {
  Subtree tail(*kernel_);
  tail.begin(chunks_, kPendingChunks);
  tail.add(pending_);
  Node node = tail.finish();
  for (auto left = stack_.rbegin(); left != stack_.rend(); ++left) {
    node = parent_node(*left, node.chaining_value());
  }
  return node.root();
}

Digest blake3(std::span<const std::byte> data, unsigned threads, const Kernel& kernel) {
  const auto hashed =
      hash_segments(Memory(data), data.size(), {.threads = threads, .kernel = &kernel});
  ASSAY_CHECK(hashed.has_value(), "hashing memory cannot fail");
  return hashed->digest;
}

}  // namespace assay::hash
