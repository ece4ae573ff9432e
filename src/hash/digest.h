// Digest: the 256 bits that name a content, and their text form, the one that b3sum prints.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::hash {

struct Digest {
  static constexpr std::size_t kSize = 32;

  std::array<std::uint8_t, kSize> bytes{};

  // 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;
  auto operator<=>(const Digest&) const = default;
};

// Exactly 64 hexadecimal digits of either case. The error's `where` is empty: the caller knows
// where the text came from, and whether a prefix would be valid there.
base::Result<Digest> parse_digest(std::string_view hex);

}  // namespace assay::hash
