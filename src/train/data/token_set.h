// TokenSet: several shards as one sequence of windows. A window has `sequence` tokens plus one, the
// target of the last; the next window starts with that token. Windows do not cross shards; the
// remainder at the end of a shard is not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/packed_rows.h"
#include "train/data/shard.h"

namespace assay::data {

struct TokenSource {
  // Files, folders (their *.tokens, or *.bin if headerless) and glob patterns, in this order;
  // inside a folder or a pattern, by name.
  std::vector<std::string> paths;
  // For files without a header: the token type and, if known, the vocabulary.
  std::optional<TokenType> headerless = {};
  std::optional<std::uint64_t> vocabulary = {};
};

base::Result<std::vector<std::string>> shard_paths(const TokenSource& source);
base::Result<Shard> open_shard(const std::string& path, const TokenSource& source);

// The `sequence` + 1 tokens starting at `first`.
struct Window {
  const Shard* shard;
  std::uint64_t first;
};

// Fails if both shards name a tokenizer and they differ; null: nothing to compare.
base::Result<void> check_same_tokenizer(const Shard& shard, const Shard* other);

// Fails if the shard does not say where its documents begin (the error names what needs that), or
// if that list is damaged.
base::Result<void> check_has_documents(const Shard& shard, const char* needed_by);

class TokenSet {
 public:
  TokenSet(TokenSet&&) noexcept = default;
  TokenSet& operator=(TokenSet&&) noexcept = default;
  // With `pack`, a seed, documents are shuffled and packed into rows (packed_rows.h), which are
  // then the windows. Fails if there are no windows, or if shards have different vocabularies or
  // tokenizers.
  static base::Result<TokenSet> open(const TokenSource& source, std::uint64_t sequence,
                                     std::optional<std::uint64_t> pack = {});

  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] std::uint64_t windows() const { return packed_ ? packed_->rows() : ends_.back(); }
  [[nodiscard]] std::uint64_t tokens() const;
  [[nodiscard]] std::optional<std::uint64_t> vocabulary() const;
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }
  // A shard that names its tokenizer (all that do name the same one); null if none does.
  [[nodiscard]] const Shard* with_tokenizer() const;
  // packed() is null unless packing was requested; its windows are not ranges of a shard, so
  // window() cannot be used. `index` is below windows().
  [[nodiscard]] const PackedRows* packed() const { return packed_ ? &*packed_ : nullptr; }
  [[nodiscard]] Window window(std::uint64_t index) const;
  // The positions at which documents begin among the `sequence` + 1 tokens of a window, except the
  // first. Every shard must have passed check_has_documents().
  void begins(std::uint64_t index, std::vector<std::uint64_t>& found) const;

 private:
  TokenSet() = default;

  std::uint64_t sequence_ = 0;
  std::vector<Shard> shards_;
  std::vector<std::uint64_t> ends_;   // number of windows in all shards up to this one
  std::optional<PackedRows> packed_;  // refers to shards_, whose memory stays when this is moved
};

}  // namespace assay::data
