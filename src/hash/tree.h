// The tree over the chunks. A subtree is hashed level by level: all its chunks, then all parents of
// chunks, and so on, which keeps the kernels' lanes full; an unpaired node at the end of a level
// moves up unchanged, which gives the tree shape of the specification ("left subtrees are full")
// for any length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hash/digest.h"
#include "hash/format.h"
#include "hash/kernel.h"

namespace assay::hash {

using ChainingValue = std::array<std::byte, kChainingBytes>;

// The input of a node's last compression, which uses a different flag for the root.
struct Node {
  std::array<std::uint32_t, 8> chaining{};
  std::array<std::byte, kBlockBytes> block{};
  std::uint32_t block_bytes = 0;
  std::uint64_t counter = 0;
  std::uint32_t flags = 0;

  [[nodiscard]] ChainingValue chaining_value() const;
  [[nodiscard]] Digest root() const;
};

Node parent_node(const ChainingValue& left, const ChainingValue& right);

// Hashes the chunks of one subtree incrementally and returns its node. Its buffer (32 bytes per
// chunk) is reused for the next subtree.
class Subtree {
 public:
  explicit Subtree(const Kernel& kernel) : kernel_(&kernel) {}

  // Starts a subtree at a chunk of the input; its capacity is `chunks` chunks.
  void begin(std::uint64_t first_chunk, std::size_t chunks);
  // `data` is whole chunks, except in the last call.
  void add(std::span<const std::byte> data);
  // The node of all that was added; without input, that of one empty chunk. The next call must be
  // begin().
  [[nodiscard]] Node finish();

 private:
  const Kernel* kernel_;
  std::vector<ChainingValue> values_;  // of the chunks, except last_
  std::size_t count_ = 0;
  std::uint64_t first_chunk_ = 0;
  Node last_;  // the last chunk, if it is incomplete or the only one
  bool has_last_ = false;
};

// The node above two or more adjacent subtrees, which are full and of equal size except the last.
// `values` is used as scratch.
Node join(const Kernel& kernel, std::span<ChainingValue> values);

}  // namespace assay::hash
