// Kernel: the inner loop of BLAKE3 for one instruction set. It hashes several rows at once, one per
// vector lane; a row is a chunk (16 blocks) or a parent node (1 block). tree.cc feeds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hash/format.h"

namespace assay::hash {

// Rows that lie `stride` bytes apart and are made of the same number of whole blocks.
struct Rows {
  const std::byte* data = nullptr;
  std::size_t stride = 0;
  std::size_t blocks = 0;
  std::uint64_t counter = 0;       // of the first row
  std::uint64_t counter_step = 0;  // from row to row
  std::uint32_t flags = 0;         // of every block
  std::uint32_t first_flags = 0;   // added for a row's first block
  std::uint32_t last_flags = 0;    // added for a row's last block
};

struct Kernel {
  const char* name;
  std::size_t lanes;
  // Writes the chaining values of `count` rows, 1 <= count <= lanes, one after the other. The
  // output may overlap the input: one-block rows are read before any value is written over them.
  void (*hash_rows)(const Rows& rows, std::size_t count, std::byte* chaining_values);
};

// The kernels that this processor and operating system can run, slowest first; never empty.
std::span<const Kernel* const> usable_kernels();
inline const Kernel& best_kernel() {
  return *usable_kernels().back();
}
// "avx512", "avx2", "sse4.1" or "portable": what hashing uses on this machine.
inline const char* simd_level() {
  return best_kernel().name;
}

// In plain C++, for processors without a vector kernel.
extern const Kernel kPortableKernel;

using Words = std::uint32_t[8];  // a chaining value, as numbers

// One compression in plain C++: for incomplete chunks at the end of the input, and for the root.
void compress(Words& chaining, const std::byte* block, std::uint32_t block_bytes,
              std::uint64_t counter, std::uint32_t flags);

// Words as the little-endian bytes that the tree is made of.
void store_words(const Words& words, std::byte* bytes);

}  // namespace assay::hash
