// The first 256 bytes of a shard. docs/data.md has the table; this is the only code that knows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "hash/digest.h"
#include "train/data/token_type.h"

namespace assay::data {

inline constexpr std::size_t kHeaderBytes = 256;
inline constexpr std::uint32_t kShardVersion = 1;

struct ShardHeader {
  TokenType type = TokenType::kU16;
  std::uint64_t vocabulary = 0;  // every token is below
  std::uint64_t count = 0;       // tokens
  hash::Digest digest;           // BLAKE3 of the tokens' bytes
  auto operator<=>(const ShardHeader&) const = default;
};

std::array<std::byte, kHeaderBytes> encode_header(const ShardHeader& header);

bool starts_with_magic(std::span<const std::byte> file);

// Of a whole file: also refused is a file that is shorter or longer than its header says. Errors
// are usage errors on `where` that name the byte.
base::Result<ShardHeader> decode_header(std::span<const std::byte> file, const std::string& where);

}  // namespace assay::data
