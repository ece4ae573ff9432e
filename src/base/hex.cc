#include "base/hex.h"

#include <sys/random.h>

#include <cerrno>
#include <vector>

namespace assay::base {

std::string hex_text(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

Result<std::string> random_hex(std::size_t bytes) {
  std::vector<std::byte> random(bytes);
  // Requests of up to 256 bytes are never cut short (getrandom(2)).
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return fail(system_error("getrandom", "the kernel returned no random numbers", errno));
  }
  return hex_text(random);
}

}  // namespace assay::base
