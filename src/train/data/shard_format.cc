#include "train/data/shard_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr std::string_view kMagic = "ASSAYTOK";
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kTokenBytesAt = 12;
constexpr std::size_t kVocabularyAt = 16;
constexpr std::size_t kCountAt = 24;
constexpr std::size_t kDigestAt = 32;
constexpr std::size_t kPaddingAt = kDigestAt + hash::Digest::kSize;

constexpr const char* kMakeAgain = "make it again with `assay data tokenize`";

template <class T>
T header_field(std::span<const std::byte> file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(value));
  return value;
}

base::Result<void> check_size(std::span<const std::byte> file, const ShardHeader& header,
                              const std::string& where) {
  const std::uint64_t payload = file.size() - kHeaderBytes;
  const std::uint64_t token_bytes = bytes_of(header.type);
  // A count whose size in bytes overflows 64 bits exceeds the file too.
  const bool overflows = header.count > ~std::uint64_t{0} / token_bytes;
  if (!overflows && header.count * token_bytes == payload) return {};
  const bool truncated = overflows || header.count * token_bytes > payload;
  return base::fail(base::usage_error(
      where,
      fmt::format("byte {}: the header says {} tokens of {} bytes, but {} bytes follow it: the "
                  "file is {}",
                  kCountAt, header.count, token_bytes, payload,
                  truncated ? "truncated" : "too long"),
      kMakeAgain));
}

}  // namespace

std::string_view name_of(TokenType type) {
  return type == TokenType::kU16 ? "u16" : "u32";
}

std::vector<std::string> token_type_names() {
  return {"u16", "u32"};
}

base::Result<TokenType> parse_token_type(std::string_view name) {
  if (name == "u16") return TokenType::kU16;
  if (name == "u32") return TokenType::kU32;
  return base::fail(base::usage_error({}, fmt::format("unknown token type '{}'", name),
                                      base::suggestion(name, token_type_names())));
}

std::array<std::byte, kHeaderBytes> encode_header(const ShardHeader& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  const auto put = [&](std::size_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(kVersionAt, kShardVersion);
  put(kTokenBytesAt, static_cast<std::uint32_t>(bytes_of(header.type)));
  put(kVocabularyAt, header.vocabulary);
  put(kCountAt, header.count);
  put(kDigestAt, header.digest.bytes);
  return bytes;
}

bool starts_with_magic(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

base::Result<ShardHeader> decode_header(std::span<const std::byte> file, const std::string& where) {
  const auto refuse = [&](std::size_t at, const std::string& what, const std::string& hint) {
    return base::fail(base::usage_error(where, fmt::format("byte {}: {}", at, what), hint));
  };
  if (file.size() >= kMagic.size() && !starts_with_magic(file)) {
    return refuse(0, "not a token shard: it does not start with ASSAYTOK",
                  "add --dtype u16 or u32 if it is a file of bare tokens");
  }
  if (file.size() < kHeaderBytes) {
    return refuse(file.size(), fmt::format("ends inside its header of {} bytes", kHeaderBytes),
                  kMakeAgain);
  }
  if (const auto version = header_field<std::uint32_t>(file, kVersionAt);
      version != kShardVersion) {
    return refuse(kVersionAt, fmt::format("version {} is not {}", version, kShardVersion),
                  "it was written by another release of assay");
  }
  ShardHeader header;
  const auto token_bytes = header_field<std::uint32_t>(file, kTokenBytesAt);
  if (token_bytes != 2 && token_bytes != 4) {
    return refuse(kTokenBytesAt, fmt::format("{} bytes per token is neither 2 nor 4", token_bytes),
                  kMakeAgain);
  }
  header.type = token_bytes == 2 ? TokenType::kU16 : TokenType::kU32;
  header.vocabulary = header_field<std::uint64_t>(file, kVocabularyAt);
  if (header.vocabulary == 0 || header.vocabulary > kMostVocabulary) {
    return refuse(kVocabularyAt,
                  fmt::format("a vocabulary of {} is not between 1 and {}", header.vocabulary,
                              kMostVocabulary),
                  kMakeAgain);
  }
  header.count = header_field<std::uint64_t>(file, kCountAt);
  std::memcpy(header.digest.bytes.data(), file.data() + kDigestAt, hash::Digest::kSize);
  const auto padding = file.subspan(kPaddingAt, kHeaderBytes - kPaddingAt);
  const auto filled =
      std::find_if(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; });
  if (filled != padding.end()) {
    return refuse(kPaddingAt + static_cast<std::size_t>(filled - padding.begin()),
                  "the header's padding is not zero", kMakeAgain);
  }
  ASSAY_TRY_VOID(check_size(file, header, where));
  return header;
}

}  // namespace assay::data
