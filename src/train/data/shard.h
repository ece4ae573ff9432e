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

// A whole file as read-only memory. hash::MappedFile handles files that are truncated while they
// are mapped, but supports only a limited number of files; a data set may have thousands of shards,
// and the remaining ones are mapped without this protection.
class Mapping {
 public:
  static base::Result<Mapping> of(int fd, std::size_t size, const std::string& where);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // The file was truncated: some of the bytes read so far may have been replaced by zeros.
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
  // Opens a file with a header. All header fields are checked against the file's size; tokens are
  // checked by verify().
  static base::Result<Shard> open(const std::filesystem::path& path);
  // Opens a file of bare tokens, as other tools write them; the caller specifies the type and, if
  // known, the vocabulary.
  static base::Result<Shard> open_headerless(const std::filesystem::path& path, TokenType type,
                                             std::optional<std::uint64_t> vocabulary = {});

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::optional<std::uint64_t> vocabulary() const { return vocabulary_; }
  [[nodiscard]] const std::optional<hash::Digest>& digest() const { return digest_; }
  // The tokens' bytes.
  [[nodiscard]] std::span<const std::byte> payload() const;
  // The indices of the tokens at which documents begin; empty if the file does not say. The list
  // may be damaged: call check_documents() before using it to locate tokens.
  [[nodiscard]] std::span<const std::uint64_t> documents() const;
  // The file's information on its documents and tokenizer; nothing for version 1.
  [[nodiscard]] const std::optional<DocumentsHeader>& documents_header() const {
    return documents_;
  }
  // The definition of the tokenizer (tokenizer_json.h), checked against its hash; empty if
  // the file has none.
  [[nodiscard]] base::Result<std::string> tokenizer_definition() const;
  [[nodiscard]] std::uint32_t token(std::uint64_t index) const;
  // Offset of a token in the file, for errors.
  [[nodiscard]] std::uint64_t byte_of(std::uint64_t index) const;

  // Fails if the file was truncated while mapped, so that bytes already read may be wrong.
  [[nodiscard]] base::Result<void> intact() const;
  // Fails unless documents() begins with the first token and ascends.
  [[nodiscard]] base::Result<void> check_documents() const;
  // Checks the hash and, if the vocabulary is known, every token. A mismatch has exit code 1.
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

// Whether the file starts with a shard's magic number. False if it cannot be read.
bool is_shard(const std::filesystem::path& path);
// Fails if is_shard(): for code that expects documents.
base::Result<void> check_is_no_shard(const std::string& path);

// Fails on the first of `count` tokens from `index` on that is outside the vocabulary.
base::Result<void> check_tokens(const Shard& shard, std::uint64_t index, std::uint64_t count,
                                std::uint64_t vocabulary);

}  // namespace assay::data
