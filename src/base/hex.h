// Bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::base {

// Two lower-case digits for each byte.
std::string hex_text(std::span<const std::byte> bytes);
// The same of an array of any kind of bytes.
template <class Bytes>
std::string hex_of(const Bytes& bytes) {
  return hex_text(std::as_bytes(std::span(bytes)));
}

// 0 to 15 for a digit of either case, else -1.
int hex_digit(char digit);

// As many random bytes from the kernel, as hexadecimal digits. At most 256.
Result<std::string> random_hex(std::size_t bytes);

}  // namespace assay::base
