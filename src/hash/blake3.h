// BLAKE3 of bytes in memory. Files: file.h.
//
//   Hasher hasher;
//   hasher.update(bytes);  …
//   hasher.finish().hex()  // what b3sum prints
//
// The digest depends on the bytes alone: not on how they were split over update(), on the number of
// threads, or on the processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hash/digest.h"
#include "hash/kernel.h"
#include "hash/tree.h"

namespace assay::hash {

// One thread, input in any pieces. Holds about 50 KiB.
class Hasher {
 public:
  explicit Hasher(const Kernel& kernel = best_kernel());

  void update(std::span<const std::byte> data);
  // The digest of all input so far; update() may be called again.
  [[nodiscard]] Digest finish() const;

 private:
  void add_subtree(std::span<const std::byte> data);

  const Kernel* kernel_;
  Subtree subtree_;
  std::uint64_t chunks_ = 0;          // in the finished subtrees
  std::vector<ChainingValue> stack_;  // finished subtrees, largest first, all of different sizes
  std::vector<std::byte> pending_;    // the bytes after them; never empty once there was input
};

// The whole input in one call, with up to `threads` threads; 0: as many as this process may use.
Digest blake3(std::span<const std::byte> data, unsigned threads = 1,
              const Kernel& kernel = best_kernel());

}  // namespace assay::hash
