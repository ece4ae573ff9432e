// ShardWriter: writes a shard of any size in constant memory. The file gets its name when it is
// complete; an abandoned one is removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "train/data/shard_format.h"

namespace assay::data {

class ShardWriter {
 public:
  // Uses the smallest token type that holds the vocabulary.
  static base::Result<ShardWriter> create(const std::filesystem::path& path,
                                          std::uint64_t vocabulary);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // Fails on a token outside the vocabulary; the file is then not created.
  base::Result<void> append(std::span<const std::uint32_t> tokens);
  // Completes the file; nothing may be appended afterwards.
  base::Result<ShardHeader> finish();

 private:
  ShardWriter(std::filesystem::path path, std::string draft, base::UniqueFd file,
              std::uint64_t vocabulary);
  base::Result<void> flush();

  std::filesystem::path path_;
  std::string draft_;  // temporary name; empty once renamed or moved from
  base::UniqueFd file_;
  ShardHeader header_;
  hash::Hasher hasher_;
  std::vector<std::byte> buffer_;
};

}  // namespace assay::data
