#include "train/data/shard_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

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
constexpr std::size_t kTokenizerAt = kDigestAt + hash::Digest::kSize;
constexpr std::size_t kDocumentsAt = kTokenizerAt + hash::Digest::kSize;
constexpr std::size_t kDefinitionBytesAt = kDocumentsAt + 8;
constexpr std::size_t kDocumentsDigestAt = kDefinitionBytesAt + 8;
// Tokens are stored plus one; 0 means none.
constexpr std::size_t kBosAt = kDocumentsDigestAt + hash::Digest::kSize;
constexpr std::size_t kEosAt = kBosAt + 4;
constexpr std::size_t kPaddingAt = kEosAt + 4;  // in version 1: kTokenizerAt

// No real file comes near; sums of sizes below cannot overflow.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

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
  const bool overflows = header.count > kMostBytes / token_bytes;
  const std::uint64_t tokens = overflows ? kMostBytes : header.count * token_bytes;
  if (!header.documents || tokens > payload) {
    if (tokens == payload) return {};
    return base::fail(base::usage_error(
        where,
        fmt::format("byte {}: the header says {} tokens of {} bytes, but {} bytes follow it: the "
                    "file is {}",
                    kCountAt, header.count, token_bytes, payload,
                    tokens > payload ? "truncated" : "too long"),
        kMakeAgain));
  }
  const DocumentsHeader& documents = *header.documents;
  const std::uint64_t after = header.documents_at();
  const bool fits = documents.count <= kMostBytes / 8 && documents.definition_bytes <= kMostBytes &&
                    after + documents.count * 8 + documents.definition_bytes == file.size();
  if (fits) return {};
  return base::fail(base::usage_error(
      where,
      fmt::format("byte {}: the header says {} documents and {} bytes of a tokenizer, but the file "
                  "has {} bytes: it is damaged",
                  kDocumentsAt, documents.count, documents.definition_bytes, file.size()),
      kMakeAgain));
}

std::optional<std::uint32_t> optional_token(std::uint32_t stored) {
  return stored == 0 ? std::nullopt : std::optional(stored - 1);
}

DocumentsHeader decode_documents(std::span<const std::byte> file) {
  DocumentsHeader documents;
  documents.count = header_field<std::uint64_t>(file, kDocumentsAt);
  documents.definition_bytes = header_field<std::uint64_t>(file, kDefinitionBytesAt);
  std::memcpy(documents.tokenizer.bytes.data(), file.data() + kTokenizerAt, hash::Digest::kSize);
  std::memcpy(documents.digest.bytes.data(), file.data() + kDocumentsDigestAt, hash::Digest::kSize);
  documents.bos = optional_token(header_field<std::uint32_t>(file, kBosAt));
  documents.eos = optional_token(header_field<std::uint32_t>(file, kEosAt));
  return documents;
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

std::uint64_t ShardHeader::documents_at() const {
  return (kHeaderBytes + count * bytes_of(type) + 7) / 8 * 8;
}

std::array<std::byte, kHeaderBytes> encode_header(const ShardHeader& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  const auto put = [&](std::size_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(kVersionAt, header.documents ? kDocumentsVersion : kShardVersion);
  put(kTokenBytesAt, static_cast<std::uint32_t>(bytes_of(header.type)));
  put(kVocabularyAt, header.vocabulary);
  put(kCountAt, header.count);
  put(kDigestAt, header.digest.bytes);
  if (header.documents) {
    put(kTokenizerAt, header.documents->tokenizer.bytes);
    put(kDocumentsAt, header.documents->count);
    put(kDefinitionBytesAt, header.documents->definition_bytes);
    put(kDocumentsDigestAt, header.documents->digest.bytes);
    if (header.documents->bos) put(kBosAt, *header.documents->bos + 1);
    if (header.documents->eos) put(kEosAt, *header.documents->eos + 1);
  }
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
                  "`assay data tokenize` makes one of documents; for bare tokens name their type, "
                  "u16 or u32 (--dtype, data.type)");
  }
  if (file.size() < kHeaderBytes) {
    return refuse(file.size(), fmt::format("ends inside its header of {} bytes", kHeaderBytes),
                  kMakeAgain);
  }
  const auto version = header_field<std::uint32_t>(file, kVersionAt);
  if (version != kShardVersion && version != kDocumentsVersion) {
    return refuse(
        kVersionAt,
        fmt::format("version {} is neither {} nor {}", version, kShardVersion, kDocumentsVersion),
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
  if (version == kDocumentsVersion) {
    header.documents = decode_documents(file);
    for (const auto& [at, token] :
         {std::pair(kBosAt, header.documents->bos), std::pair(kEosAt, header.documents->eos)}) {
      if (!token || *token < header.vocabulary) continue;
      return refuse(
          at, fmt::format("token {} is outside the vocabulary of {}", *token, header.vocabulary),
          kMakeAgain);
    }
  }
  const std::size_t padding_at = header.documents ? kPaddingAt : kTokenizerAt;
  const auto padding = file.subspan(padding_at, kHeaderBytes - padding_at);
  const auto filled =
      std::find_if(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; });
  if (filled != padding.end()) {
    return refuse(padding_at + static_cast<std::size_t>(filled - padding.begin()),
                  "the header's padding is not zero", kMakeAgain);
  }
  ASSAY_TRY_VOID(check_size(file, header, where));
  return header;
}

}  // namespace assay::data
