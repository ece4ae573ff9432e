// How a shard stores its tokens: two or four bytes each, little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::data {

static_assert(std::endian::native == std::endian::little, "shards are mapped, not converted");

enum class TokenType : std::uint8_t { kU16, kU32 };

// Ids become int32 in a batch.
inline constexpr std::uint64_t kMostVocabulary = std::uint64_t{1} << 31;

constexpr std::size_t bytes_of(TokenType type) {
  return type == TokenType::kU16 ? 2 : 4;
}

// The smaller type that every token of the vocabulary fits.
constexpr TokenType type_for(std::uint64_t vocabulary) {
  return vocabulary <= (std::uint64_t{1} << 16) ? TokenType::kU16 : TokenType::kU32;
}

std::string_view name_of(TokenType type);  // "u16"
std::vector<std::string> token_type_names();
base::Result<TokenType> parse_token_type(std::string_view name);

}  // namespace assay::data
