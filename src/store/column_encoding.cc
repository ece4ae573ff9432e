#include "store/column_encoding.h"

#include <algorithm>

namespace assay::store {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::optional<std::span<const std::uint8_t>> bytes_of(const std::optional<hash::Digest>& digest) {
  if (!digest) return std::nullopt;
  return std::span<const std::uint8_t>(digest->bytes);
}

std::vector<std::byte> packed_strings(std::span<const std::string> strings) {
  std::vector<std::byte> packed;
  for (const std::string& string : strings) {
    const auto bytes = bytes_of(string);
    packed.insert(packed.end(), bytes.begin(), bytes.end());
    packed.push_back(std::byte{0});
  }
  return packed;
}

std::vector<std::string> unpacked_strings(std::string_view packed) {
  std::vector<std::string> strings;
  while (!packed.empty()) {
    const std::string_view string = packed.substr(0, packed.find('\0'));
    strings.emplace_back(string);
    packed.remove_prefix(std::min(string.size() + 1, packed.size()));
  }
  return strings;
}

std::vector<std::string> strings_at(const Statement& row, int column) {
  const std::vector<std::byte> bytes = row.blob(column);
  return unpacked_strings({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<hash::Digest> digest_at(const Statement& row, int column) {
  const std::vector<std::byte> bytes = row.blob(column);
  if (bytes.size() != hash::Digest::kSize) return std::nullopt;
  hash::Digest digest;
  std::transform(bytes.begin(), bytes.end(), digest.bytes.begin(),
                 [](std::byte byte) { return static_cast<std::uint8_t>(byte); });
  return digest;
}

}  // namespace assay::store
