// Shard: a file of tokens, memory-mapped read-only. Written by shard_writer.h, combined by
// token_set.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "hash/digest.h"
#include "hash/mapped_file.h"
#include "train/data/shard_format.h"

namespace assay::data {

// A whole file as read-only memory. hash::MappedFile guards against files that are truncated while
// they are mapped, but has few slots; a data set may have thousands of shards, and those beyond the
// slots are mapped without the guard.
class Mapping {
 public:
  static base::Result<Mapping> of(int fd, std::size_t size, const std::string& where);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // The file was truncated: some bytes read so far may have been zeros.
  [[nodiscard]] bool damaged() const { return guarded_ && guarded_->damaged(); }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* at) const;
  };

  std::optional<hash::MappedFile> guarded_;
  std::unique_ptr<const std::byte, Unmap> unguarded_ = {nullptr, Unmap{0}};
  std::span<const std::byte> bytes_;
};

class Shard {
 public:
  // Opens a file with a header. All header fields are checked against the file's size; the tokens
  // are checked by verify().
  static base::Result<Shard> open(const std::filesystem::path& path);
  // Opens a file of bare tokens, as other tools write them: the caller gives the type, and the
  // vocabulary if it is known.
  static base::Result<Shard> open_headerless(const std::filesystem::path& path, TokenType type,
                                             std::optional<std::uint64_t> vocabulary = {});

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::optional<std::uint64_t> vocabulary() const { return vocabulary_; }
  [[nodiscard]] const std::optional<hash::Digest>& digest() const { return digest_; }
  // The tokens' bytes.
  [[nodiscard]] std::span<const std::byte> payload() const;
  // Where documents begin, as indices of tokens, in order; empty if the file does not say. The file
  // may be damaged: check_documents() comes first wherever tokens are found by it.
  [[nodiscard]] std::span<const std::uint64_t> documents() const;
  // What the file says about its documents and its tokenizer; nothing for version 1.
  [[nodiscard]] const std::optional<DocumentsHeader>& documents_header() const {
    return documents_;
  }
  // The definition of the tokenizer (tokenizer_json_writer.h), checked against its hash; empty if
  // the file has none.
  [[nodiscard]] base::Result<std::string> tokenizer_definition() const;
  [[nodiscard]] std::uint32_t token(std::uint64_t index) const;
  // Offset of a token in the file, for errors.
  [[nodiscard]] std::uint64_t byte_of(std::uint64_t index) const;

  // Fails if the file was truncated while mapped, so that bytes already read may be wrong.
  [[nodiscard]] base::Result<void> intact() const;
  // Fails unless documents() ascends, from the first token on.
  [[nodiscard]] base::Result<void> check_documents() const;
  // Checks the hash and, if the vocabulary is known, every token. A mismatch is exit code 1.
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
  std::optional<DocumentsHeader> documents_;
  std::size_t documents_at_ = 0;
};

// Whether the file begins as a shard does. False for one that cannot be read.
bool is_shard(const std::filesystem::path& path);
// Fails if it does: for what reads documents.
base::Result<void> check_is_no_shard(const std::string& path);

// Fails on the first of `count` tokens from `index` on that is outside the vocabulary.
base::Result<void> check_tokens(const Shard& shard, std::uint64_t index, std::uint64_t count,
                                std::uint64_t vocabulary);

}  // namespace assay::data
