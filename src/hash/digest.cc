#include "hash/digest.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "base/text.h"

namespace assay::hash {

std::string Digest::hex() const {
  return base::hex_of(bytes);
}

base::Result<Digest> parse_digest(std::string_view hex) {
  constexpr const char* kHint = "expected 64 hexadecimal digits";
  if (hex.size() != 2 * Digest::kSize) {
    return base::fail(base::usage_error(
        {}, fmt::format("a digest cannot have {} characters", hex.size()), kHint));
  }
  Digest digest;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const int value = base::hex_digit(hex[i]);
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
