// The file format of a shard: the type of its tokens and its header of 256 bytes. docs/data.md has
// the table; this is the only code that knows the layout.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_type.h"
#include "hash/digest.h"

namespace assay::data {

static_assert(std::endian::native == std::endian::little, "shards are mapped, not converted");

using base::TokenType;

// Token ids are int32 in a batch.
inline constexpr std::uint64_t kMostVocabulary = std::uint64_t{1} << 31;

constexpr std::size_t bytes_of(TokenType type) {
  return type == TokenType::kU16 ? 2 : 4;
}

// The smallest type that holds every token of the vocabulary.
constexpr TokenType type_for(std::uint64_t vocabulary) {
  return vocabulary <= (std::uint64_t{1} << 16) ? TokenType::kU16 : TokenType::kU32;
}

std::string_view name_of(TokenType type);  // "u16"
std::vector<std::string> token_type_names();
base::Result<TokenType> parse_token_type(std::string_view name);

inline constexpr std::size_t kHeaderBytes = 256;
// Version 1 has only tokens. In version 2 they are followed by the document starts and the
// tokenizer.
inline constexpr std::uint32_t kShardVersion = 1;
inline constexpr std::uint32_t kDocumentsVersion = 2;

// Header fields of version 2.
struct DocumentsHeader {
  std::uint64_t count = 0;             // documents
  std::uint64_t definition_bytes = 0;  // size of the tokenizer's definition; 0: not known
  hash::Digest tokenizer;              // BLAKE3 of the definition: the tokenizer's identity
  hash::Digest digest;                 // BLAKE3 of everything after the tokens
  std::optional<std::uint32_t> bos;    // the token before every document
  std::optional<std::uint32_t> eos;    // the token after every document
  auto operator<=>(const DocumentsHeader&) const = default;
};

struct ShardHeader {
  TokenType type = TokenType::kU16;
  std::uint64_t vocabulary = 0;              // every token is below this
  std::uint64_t count = 0;                   // tokens
  hash::Digest digest;                       // BLAKE3 of the tokens' bytes
  std::optional<DocumentsHeader> documents;  // version 2 only
  auto operator<=>(const ShardHeader&) const = default;

  // The offset of the list of documents in the file: after the tokens, at a multiple of 8.
  [[nodiscard]] std::uint64_t documents_at() const;
};

std::array<std::byte, kHeaderBytes> encode_header(const ShardHeader& header);

bool starts_with_magic(std::span<const std::byte> file);

// Decodes the header of a whole file. Refuses a file whose length differs from what its header
// says. Errors are usage errors on `where` that name the byte.
base::Result<ShardHeader> decode_header(std::span<const std::byte> file, const std::string& where);

}  // namespace assay::data
