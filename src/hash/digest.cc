#include "hash/digest.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::hash {
namespace {

// 0 to 15, or -1.
int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * kSize);
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

base::Result<Digest> parse_digest(std::string_view hex) {
  constexpr const char* kHint = "expected 64 hexadecimal digits";
  if (hex.size() != 2 * Digest::kSize) {
    return base::fail(base::usage_error(
        {}, fmt::format("a digest cannot have {} characters", hex.size()), kHint));
  }
  Digest digest;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const int value = hex_value(hex[i]);
    if (value < 0) {
      return base::fail(base::usage_error(
          {}, fmt::format("'{}' is not a digest", base::shortened(base::printable(hex), 70)),
          kHint));
    }
    auto& byte = digest.bytes[i / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return digest;
}

}  // namespace assay::hash
