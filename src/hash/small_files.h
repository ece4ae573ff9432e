// Files of a few KiB, hashed together: the lanes of a vector kernel, which one such file cannot
// fill, take chunks of different files.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "hash/file.h"
#include "hash/format.h"
#include "hash/kernel.h"
#include "hash/tree.h"

namespace assay::hash {

// Takes up to kMost files, then gives their digests, and can be used again.
class SmallFiles {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kMostBytes = 8192;

  explicit SmallFiles(const Kernel& kernel = best_kernel());

  // Whether there is room for a file of this size.
  [[nodiscard]] bool takes(std::int64_t size) const {
    return files_.size() < kMost && size > 0 && size <= static_cast<std::int64_t>(kMostBytes);
  }
  // Reads a regular file whose stamp the caller has just read from `fd`. The result is what
  // hash_file() returns, without the digest.
  base::Result<FileDigest> add(int fd, const std::string& where, const FileStamp& stamp);
  // Of the files, in the order in which add() succeeded. The next add() begins anew.
  std::vector<Digest> digests();

 private:
  static constexpr std::size_t kMostChunks = kMostBytes / kChunkBytes;
  // A whole chunk of each file that has so many; not of files that have nothing else, because an
  // only chunk is the root of the tree.
  struct Level {
    std::vector<std::byte> chunks;
    std::size_t count = 0;
    std::array<ChainingValue, kMost> values;
  };
  struct File {
    std::size_t chunks = 0;  // in the first levels
    std::array<std::size_t, kMostChunks> place{};
    std::array<std::byte, kChunkBytes> rest;  // the last chunk, if it is incomplete or the only one
    std::size_t rest_bytes = 0;
  };
  void hash_levels();
  Digest digest_of(const File& file);

  const Kernel* kernel_;
  Subtree one_chunk_;
  std::array<Level, kMostChunks> levels_;
  std::vector<File> files_;
};

}  // namespace assay::hash
