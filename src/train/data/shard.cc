#include "train/data/shard.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "hash/blake3.h"

namespace assay::data {
namespace {

constexpr const char* kChanged = "the file was changed after it was written";

template <class T>
std::uint64_t first_at_least(std::span<const std::byte> bytes, std::uint64_t limit) {
  const auto* tokens = reinterpret_cast<const T*>(bytes.data());
  const std::size_t count = bytes.size() / sizeof(T);
  std::size_t at = 0;
  while (at < count && tokens[at] < limit) ++at;
  return at;
}

}  // namespace

void Mapping::Unmap::operator()(const std::byte* at) const {
  ::munmap(const_cast<std::byte*>(at), size);
}

base::Result<Mapping> Mapping::of(int fd, std::size_t size, const std::string& where) {
  Mapping mapping;
  if (size == 0) return mapping;
  if (auto guarded = hash::MappedFile::map(fd, size)) {
    mapping.guarded_.emplace(std::move(*guarded));
    mapping.bytes_ = mapping.guarded_->bytes();
    return mapping;
  }
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return base::fail(base::system_error(where, "cannot map", errno));
  mapping.unguarded_ = {static_cast<const std::byte*>(at), Unmap{size}};
  mapping.bytes_ = {mapping.unguarded_.get(), size};
  return mapping;
}

base::Result<Shard> Shard::map(const std::filesystem::path& path) {
  const std::string where = path.string();
  ASSAY_TRY(const base::UniqueFd fd, base::open_regular(path));
  ASSAY_TRY(const struct stat status, base::regular_status(fd.get(), where));
  ASSAY_TRY(Mapping mapping,
            Mapping::of(fd.get(), static_cast<std::size_t>(status.st_size), where));
  return Shard(where, std::move(mapping));
}

base::Result<Shard> Shard::open(const std::filesystem::path& path) {
  ASSAY_TRY(Shard shard, map(path));
  const hash::SigbusUnblocked unblocked;
  ASSAY_TRY(const ShardHeader header, decode_header(shard.mapping_.bytes(), shard.where_));
  shard.payload_at_ = kHeaderBytes;
  shard.type_ = header.type;
  shard.count_ = header.count;
  shard.vocabulary_ = header.vocabulary;
  shard.digest_ = header.digest;
  shard.documents_ = header.documents;
  shard.documents_at_ = header.documents ? header.documents_at() : 0;
  return shard;
}

base::Result<Shard> Shard::open_headerless(const std::filesystem::path& path, TokenType type,
                                           std::optional<std::uint64_t> vocabulary) {
  ASSAY_TRY(Shard shard, map(path));
  const hash::SigbusUnblocked unblocked;
  const auto bytes = shard.mapping_.bytes();
  if (starts_with_magic(bytes)) {
    return base::fail(
        base::usage_error(shard.where_, "byte 0: has a header with its type", "leave --dtype out"));
  }
  if (bytes.size() % bytes_of(type) != 0) {
    return base::fail(base::usage_error(
        shard.where_,
        fmt::format("byte {}: {} bytes are not a whole number of {} tokens",
                    bytes.size() - bytes.size() % bytes_of(type), bytes.size(), name_of(type)),
        "the file is truncated, or of another type"));
  }
  shard.type_ = type;
  shard.count_ = bytes.size() / bytes_of(type);
  shard.vocabulary_ = vocabulary;
  return shard;
}

std::span<const std::byte> Shard::payload() const {
  return mapping_.bytes().subspan(payload_at_, count_ * bytes_of(type_));
}

std::span<const std::uint64_t> Shard::documents() const {
  if (!documents_) return {};
  // Aligned: mappings are, and the list is at a multiple of 8.
  const std::byte* at = mapping_.bytes().data() + documents_at_;
  return {reinterpret_cast<const std::uint64_t*>(at), documents_->count};
}

base::Result<std::string> Shard::tokenizer_definition() const {
  if (!documents_ || documents_->definition_bytes == 0) return std::string();
  const hash::SigbusUnblocked unblocked;
  const auto bytes = mapping_.bytes().last(documents_->definition_bytes);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ASSAY_TRY_VOID(intact());
  if (hash::blake3(std::as_bytes(std::span(text))) != documents_->tokenizer) {
    return base::fail(base::failed_error(where_, "its tokenizer is damaged",
                                         "make it again with `assay data tokenize`"));
  }
  return text;
}

base::Result<void> Shard::check_documents() const {
  const hash::SigbusUnblocked unblocked;
  const auto starts = documents();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] >= count_ || (i > 0 && starts[i] <= starts[i - 1]) ||
        (i == 0 && starts[0] != 0)) {
      ASSAY_TRY_VOID(intact());
      return base::fail(base::failed_error(
          where_, fmt::format("document {} cannot begin at token {}", i, starts[i]), kChanged));
    }
  }
  return intact();
}

std::uint32_t Shard::token(std::uint64_t index) const {
  const std::byte* at = payload().data() + index * bytes_of(type_);
  std::uint32_t token = 0;
  std::memcpy(&token, at, bytes_of(type_));
  return token;
}

std::uint64_t Shard::byte_of(std::uint64_t index) const {
  return payload_at_ + index * bytes_of(type_);
}

base::Result<void> Shard::intact() const {
  if (!mapping_.damaged()) return {};
  return base::fail(base::failed_error(where_, "was truncated while it was read",
                                       "shards must not change while they are in use"));
}

base::Result<void> Shard::verify() const {
  const hash::SigbusUnblocked unblocked;
  if (digest_) {
    const hash::Digest found = hash::blake3(payload(), 0);
    ASSAY_TRY_VOID(intact());
    if (found != *digest_) {
      return base::fail(base::failed_error(
          where_,
          fmt::format("byte {}: the BLAKE3 of the tokens is {}, but the header has {}", payload_at_,
                      found.hex(), digest_->hex()),
          kChanged));
    }
  }
  if (documents_) {
    const auto after = mapping_.bytes().subspan(payload_at_ + payload().size());
    if (hash::blake3(after, 0) != documents_->digest) {
      return base::fail(base::failed_error(
          where_,
          fmt::format("byte {}: the BLAKE3 of the list of documents is not the header's",
                      documents_at_),
          kChanged));
    }
    ASSAY_TRY_VOID(check_documents());
  }
  if (vocabulary_) ASSAY_TRY_VOID(check_tokens(*this, 0, count_, *vocabulary_));
  return intact();
}

bool is_shard(const std::filesystem::path& path) {
  const auto fd = base::open_regular(path);
  if (!fd) return false;
  std::array<std::byte, kHeaderBytes> first{};
  const ssize_t size = ::pread(fd->get(), first.data(), first.size(), 0);
  return size > 0 && starts_with_magic(std::span(first).first(static_cast<std::size_t>(size)));
}

base::Result<void> check_is_no_shard(const std::string& path) {
  if (path == "-" || !is_shard(path)) return {};
  return base::fail(base::usage_error(path, "has tokens, not documents",
                                      "`assay data info` says what is in a shard"));
}

base::Result<void> check_tokens(const Shard& shard, std::uint64_t index, std::uint64_t count,
                                std::uint64_t vocabulary) {
  const std::size_t size = bytes_of(shard.type());
  const auto bytes = shard.payload().subspan(index * size, count * size);
  const std::uint64_t at = shard.type() == TokenType::kU16
                               ? first_at_least<std::uint16_t>(bytes, vocabulary)
                               : first_at_least<std::uint32_t>(bytes, vocabulary);
  if (at == count) return {};
  return base::fail(base::failed_error(
      shard.where(),
      fmt::format("byte {}: token {} is {}, outside the vocabulary of {}",
                  shard.byte_of(index + at), index + at, shard.token(index + at), vocabulary),
      "these tokens were made with another tokenizer"));
}

}  // namespace assay::data
