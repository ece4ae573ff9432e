#include "lineage/pack/tar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"

namespace assay::lineage {
namespace {

constexpr std::int64_t kTarBlock = 512;
constexpr std::int64_t kMostOctal = (std::int64_t{1} << 33) - 1;  // 11 digits

struct TarHeader {
  std::array<char, 100> name;
  std::array<char, 8> mode, uid, gid;
  std::array<char, 12> size, mtime;
  std::array<char, 8> checksum;
  char type;
  std::array<char, 100> link;
  std::array<char, 8> magic;  // and version
  std::array<char, 32> user, group;
  std::array<char, 8> major, minor;
  std::array<char, 155> prefix;
  std::array<char, 12> unused;
};
static_assert(sizeof(TarHeader) == kTarBlock);

constexpr std::string_view kTarMagic{"ustar\00000", 8};

template <std::size_t N>
void put_octal(std::array<char, N>& field, std::int64_t value) {
  field.back() = '\0';
  for (std::size_t i = N - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

// Sizes that do not fit into the octal digits are stored in binary, as GNU tar does.
void put_size(std::array<char, 12>& field, std::int64_t value) {
  if (value <= kMostOctal) return put_octal(field, value);
  for (std::size_t i = field.size(); i-- > 0; value >>= 8) field[i] = static_cast<char>(value);
  field[0] = static_cast<char>(0x80);
}

template <std::size_t N>
std::optional<std::int64_t> get_number(const std::array<char, N>& field) {
  std::int64_t value = 0;
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    for (std::size_t i = 1; i < N; ++i) {
      if (value >> 54 != 0) return std::nullopt;
      value = (value << 8) | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  std::size_t i = 0;
  while (i < N && field[i] >= '0' && field[i] <= '7') value = value * 8 + (field[i++] - '0');
  if (i == 0) return std::nullopt;
  for (; i < N; ++i) {
    if (field[i] != '\0' && field[i] != ' ') return std::nullopt;
  }
  return value;
}

// The sum of the header's bytes, with the checksum field counted as blanks.
std::int64_t checksum_of(TarHeader header) {
  header.checksum.fill(' ');
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < kTarBlock; ++i) sum += bytes[i];
  return sum;
}

std::int64_t padding_of(std::int64_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

}  // namespace

base::Result<void> TarWriter::put(std::string_view bytes) {
  if (base::write_all(fd_, bytes)) return {};
  return base::fail(base::system_error(where_, "cannot be written", errno));
}

base::Result<void> TarWriter::begin(std::string_view name, std::int64_t size) {
  TarHeader header{};
  ASSAY_CHECK(left_ == 0 && name.size() <= header.name.size(), "members are whole, names short");
  std::copy(name.begin(), name.end(), header.name.begin());
  put_octal(header.mode, 0644);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_size(header.size, size);
  put_octal(header.mtime, 0);
  header.type = '0';
  std::copy(kTarMagic.begin(), kTarMagic.end(), header.magic.begin());
  put_octal(header.checksum, checksum_of(header));
  left_ = size_ = size;
  ASSAY_TRY_VOID(put({reinterpret_cast<const char*>(&header), sizeof header}));
  return left_ == 0 ? pad() : base::Result<void>{};
}

base::Result<void> TarWriter::write(std::string_view bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  ASSAY_CHECK(count <= left_, "a member has the size that was announced");
  ASSAY_TRY_VOID(put(bytes));
  left_ -= count;
  return left_ == 0 && count > 0 ? pad() : base::Result<void>{};
}

base::Result<void> TarWriter::pad() {
  return put(std::string(static_cast<std::size_t>(padding_of(size_)), '\0'));
}

base::Result<void> TarWriter::add(std::string_view name, std::string_view text) {
  ASSAY_TRY_VOID(begin(name, static_cast<std::int64_t>(text.size())));
  return write(text);
}

base::Result<void> TarWriter::finish() {
  return put(std::string(2 * kTarBlock, '\0'));
}

base::Error TarReader::bad(std::string what) const {
  return base::usage_error(where_, std::move(what), "make it again with `assay pack`");
}

base::Result<void> TarReader::get(std::span<char> buffer) {
  std::size_t at = 0;
  while (at < buffer.size()) {
    const ssize_t got = ::read(fd_, buffer.data() + at, buffer.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail(base::system_error(where_, "cannot be read", errno));
    if (got == 0) return base::fail(bad("is truncated, or is not a pack"));
    at += static_cast<std::size_t>(got);
  }
  return {};
}

base::Result<std::optional<TarMember>> TarReader::next() {
  if (left_ > 0) return base::fail(bad("has members that are longer than they should be"));
  std::array<char, kTarBlock> block{};
  ASSAY_TRY_VOID(get(std::span(block).first(static_cast<std::size_t>(padding_))));
  padding_ = 0;
  ASSAY_TRY_VOID(get(block));
  if (std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; })) {
    return std::nullopt;
  }
  TarHeader header{};
  std::memcpy(&header, block.data(), sizeof header);
  if (get_number(header.checksum) != checksum_of(header)) {
    return base::fail(bad("is damaged, or is not a pack"));
  }
  const std::string name(header.name.data(), ::strnlen(header.name.data(), header.name.size()));
  if (header.type != '0' || header.prefix[0] != '\0') {
    return base::fail(bad(fmt::format("has a member that is not a regular file, '{}'", name)));
  }
  const auto size = get_number(header.size);
  if (!size || *size < 0) return base::fail(bad("has a member without a size"));
  left_ = *size;
  padding_ = padding_of(*size);
  return TarMember{name, *size};
}

base::Result<std::size_t> TarReader::read(std::span<char> buffer) {
  const auto count =
      static_cast<std::size_t>(std::min(static_cast<std::int64_t>(buffer.size()), left_));
  ASSAY_TRY_VOID(get(buffer.first(count)));
  left_ -= static_cast<std::int64_t>(count);
  return count;
}

base::Result<std::string> TarReader::read_all(std::int64_t limit) {
  if (left_ > limit) return base::fail(bad("has a member that is too long"));
  std::string text(static_cast<std::size_t>(left_), '\0');
  ASSAY_TRY_VOID(read(text));
  return text;
}

}  // namespace assay::lineage
