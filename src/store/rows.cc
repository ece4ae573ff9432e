#include "store/rows.h"

#include <algorithm>

namespace assay::store {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::optional<std::span<const std::uint8_t>> bytes_of(const std::optional<hash::Digest>& digest) {
  if (!digest) return std::nullopt;
  return std::span<const std::uint8_t>(digest->bytes);
}

std::vector<std::byte> packed_words(std::span<const std::string> words) {
  std::vector<std::byte> packed;
  for (const std::string& word : words) {
    const auto bytes = bytes_of(word);
    packed.insert(packed.end(), bytes.begin(), bytes.end());
    packed.push_back(std::byte{0});
  }
  return packed;
}

std::vector<std::string> words_at(const Statement& row, int column) {
  std::vector<std::string> words;
  std::string word;
  for (const std::byte byte : row.blob(column)) {
    if (byte != std::byte{0}) {
      word.push_back(static_cast<char>(byte));
    } else {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
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
