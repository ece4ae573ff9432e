// TokenSet: several shards, in order, as one row of windows. A window is `sequence` tokens and the
// one after them, which is the last one's target; the next begins where the targets end. None
// crosses from one shard into another, and what is left at a shard's end is not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/shard.h"

namespace assay::data {

struct TokenSource {
  // Files, folders (their *.tokens, or *.bin if headerless) and glob patterns, in this order;
  // inside a folder or a pattern, by name.
  std::vector<std::string> paths;
  // Of files without a header: what their tokens are.
  std::optional<TokenType> headerless = {};
  std::optional<std::uint64_t> vocabulary = {};
};

base::Result<std::vector<std::string>> shard_paths(const TokenSource& source);
base::Result<Shard> open_shard(const std::string& path, const TokenSource& source);

// Where a window's tokens are: `sequence` + 1 of them from `first` on.
struct Window {
  const Shard* shard;
  std::uint64_t first;
};

class TokenSet {
 public:
  // Refused: no windows at all, and shards of different vocabularies.
  static base::Result<TokenSet> open(const TokenSource& source, std::uint64_t sequence);

  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] std::uint64_t windows() const { return ends_.back(); }
  [[nodiscard]] std::uint64_t tokens() const;
  [[nodiscard]] std::optional<std::uint64_t> vocabulary() const;
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }
  // `index` is below windows().
  [[nodiscard]] Window window(std::uint64_t index) const;

 private:
  TokenSet() = default;

  std::uint64_t sequence_ = 0;
  std::vector<Shard> shards_;
  std::vector<std::uint64_t> ends_;  // windows in this shard and all before it
};

}  // namespace assay::data
