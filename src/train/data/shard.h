// Shard: a file of tokens, mapped and read-only. Written by shard_writer.h, gathered by
// token_set.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "hash/digest.h"
#include "train/data/mapping.h"
#include "train/data/token_type.h"

namespace assay::data {

class Shard {
 public:
  // A file with our header, every field of which is checked against the file's size; the tokens
  // themselves are looked at by verify().
  static base::Result<Shard> open(const std::filesystem::path& path);
  // Bare tokens, as other tools write them. Nothing in such a file says what it is, so the caller
  // does; a vocabulary is known only if told.
  static base::Result<Shard> open_headerless(const std::filesystem::path& path, TokenType type,
                                             std::optional<std::uint64_t> vocabulary = {});

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::optional<std::uint64_t> vocabulary() const { return vocabulary_; }
  [[nodiscard]] const std::optional<hash::Digest>& digest() const { return digest_; }
  [[nodiscard]] std::span<const std::byte> payload() const;
  [[nodiscard]] std::uint32_t token(std::uint64_t index) const;
  // Where in the file a token stands, for errors.
  [[nodiscard]] std::uint64_t byte_of(std::uint64_t index) const;

  // An error once bytes that were read may not have been the file's: it was cut meanwhile.
  [[nodiscard]] base::Result<void> intact() const;
  // The hash and, where the vocabulary is known, every token. The answer no is exit code 1.
  [[nodiscard]] base::Result<void> verify() const;

 private:
  Shard(std::string where, Mapping mapping)
      : where_(std::move(where)), mapping_(std::move(mapping)) {}
  static base::Result<Shard> map(const std::filesystem::path& path);

  std::string where_;
  Mapping mapping_;
  std::size_t payload_at_ = 0;
  TokenType type_ = TokenType::kU16;
  std::uint64_t count_ = 0;
  std::optional<std::uint64_t> vocabulary_;
  std::optional<hash::Digest> digest_;
};

// The first token of `shard`, from `index` on, that is `vocabulary` or more, as an error.
base::Result<void> check_tokens(const Shard& shard, std::uint64_t index, std::uint64_t count,
                                std::uint64_t vocabulary);

}  // namespace assay::data
