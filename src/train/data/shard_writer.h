// ShardWriter: makes a shard, however large, in constant memory. The file takes its name when it is
// complete; until then nothing stands at the path, and nothing is left if it never is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "train/data/shard_header.h"

namespace assay::data {

class ShardWriter {
 public:
  // The type is the smallest that the vocabulary fits.
  static base::Result<ShardWriter> create(const std::filesystem::path& path,
                                          std::uint64_t vocabulary);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // A token outside the vocabulary is an error, and the file is not made.
  base::Result<void> append(std::span<const std::uint32_t> tokens);
  // Nothing may be appended afterwards.
  base::Result<ShardHeader> finish();

 private:
  ShardWriter(std::filesystem::path path, std::string draft, base::UniqueFd file,
              std::uint64_t vocabulary);
  base::Result<void> flush();

  std::filesystem::path path_;
  std::string draft_;  // empty once it has been renamed, or moved from
  base::UniqueFd file_;
  ShardHeader header_;
  hash::Hasher hasher_;
  std::vector<std::byte> buffer_;
};

}  // namespace assay::data
