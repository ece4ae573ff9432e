#include "hash/tree.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "hash/kernel.h"

namespace assay::hash {
namespace {

ChainingValue compressed(const Node& node, std::uint32_t more_flags) {
  Words words;
  std::memcpy(words, node.chaining.data(), sizeof words);
  compress(words, node.block.data(), node.block_bytes, node.counter, node.flags | more_flags);
  ChainingValue value;
  store_words(words, value.data());
  return value;
}

// A chunk of 0 to 1024 bytes.
Node chunk_node(std::span<const std::byte> chunk, std::uint64_t counter) {
  Node node{.counter = counter, .flags = kChunkStart};
  Words words;
  std::memcpy(words, kInitial, sizeof words);
  for (; chunk.size() > kBlockBytes; chunk = chunk.subspan(kBlockBytes)) {
    compress(words, chunk.data(), kBlockBytes, counter, node.flags);
    node.flags = 0;
  }
  std::memcpy(node.chaining.data(), words, sizeof words);
  std::copy(chunk.begin(), chunk.end(), node.block.begin());
  node.block_bytes = static_cast<std::uint32_t>(chunk.size());
  node.flags |= kChunkEnd;
  return node;
}

void hash_rows(const Kernel& kernel, Rows rows, std::size_t count, ChainingValue* values) {
  while (count > 0) {
    const std::size_t now = std::min(count, kernel.lanes);
    // For one row, plain code is faster than a vector kernel.
    (now == 1 ? kPortableKernel : kernel).hash_rows(rows, now, values->data());
    rows.data += now * rows.stride;
    rows.counter += now * rows.counter_step;
    values += now;
    count -= now;
  }
}

// Replaces a level of the tree by the one above it; returns its number of nodes.
std::size_t climb(const Kernel& kernel, ChainingValue* values, std::size_t count) {
  const Rows rows{.data = values->data(), .stride = kBlockBytes, .blocks = 1, .flags = kParent};
  hash_rows(kernel, rows, count / 2, values);
  if (count % 2 == 1) values[count / 2] = values[count - 1];
  return (count + 1) / 2;
}

}  // namespace

ChainingValue Node::chaining_value() const {
  return compressed(*this, 0);
}

Digest Node::root() const {
  const ChainingValue value = compressed(*this, kRoot);
  Digest digest;
  std::memcpy(digest.bytes.data(), value.data(), Digest::kSize);
  return digest;
}

Node parent_node(const ChainingValue& left, const ChainingValue& right) {
  Node node{.block_bytes = kBlockBytes, .flags = kParent};
  std::copy(std::begin(kInitial), std::end(kInitial), node.chaining.begin());
  std::copy(left.begin(), left.end(), node.block.begin());
  std::copy(right.begin(), right.end(), node.block.begin() + kChainingBytes);
  return node;
}

void Subtree::begin(std::uint64_t first_chunk, std::size_t chunks) {
  if (values_.size() < chunks) values_.resize(chunks);
  count_ = 0;
  first_chunk_ = first_chunk;
  has_last_ = false;
}

void Subtree::add(std::span<const std::byte> data) {
  if (data.empty()) return;
  if (has_last_) {
    ASSAY_CHECK(last_.block_bytes == kBlockBytes, "only the last chunk of a subtree is partial");
    values_[count_++] = last_.chaining_value();
    has_last_ = false;
  }
  const std::size_t whole = data.size() / kChunkBytes;
  const std::size_t rest = data.size() % kChunkBytes;
  ASSAY_CHECK(count_ + whole + (rest > 0 ? 1 : 0) <= values_.size(), "the subtree is large enough");
  // A first chunk may turn out to be the only one, and then the root.
  const bool maybe_only = count_ == 0 && whole == 1 && rest == 0;
  if (whole > 0 && !maybe_only) {
    hash_rows(*kernel_,
              {.data = data.data(),
               .stride = kChunkBytes,
               .blocks = kBlocksPerChunk,
               .counter = first_chunk_ + count_,
               .counter_step = 1,
               .first_flags = kChunkStart,
               .last_flags = kChunkEnd},
              whole, values_.data() + count_);
    count_ += whole;
  }
  if (rest > 0 || maybe_only) {
    last_ = chunk_node(maybe_only ? data : data.last(rest), first_chunk_ + count_);
    has_last_ = true;
  }
}

Node Subtree::finish() {
  if (count_ == 0) return has_last_ ? last_ : chunk_node({}, first_chunk_);
  if (has_last_) values_[count_++] = last_.chaining_value();
  return join(*kernel_, std::span(values_).first(count_));
}

Node join(const Kernel& kernel, std::span<ChainingValue> values) {
  ASSAY_CHECK(values.size() >= 2, "a node has two children");
  std::size_t count = values.size();
  while (count > 2) count = climb(kernel, values.data(), count);
  return parent_node(values[0], values[1]);
}

}  // namespace assay::hash
