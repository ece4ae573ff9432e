// A device's UUID as NVML writes it ("GPU-…", "MIG-…") and as the driver returns it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::gpu {

// False, if it is no UUID. Slices of older drivers ("MIG-GPU-…/1/0") have none of their own.
inline bool parse_uuid(const char* text, std::uint64_t (&uuid)[2]) {
  constexpr std::size_t kDigits = 32;
  const auto starts = [&](const char* with) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (text[i] != with[i]) return false;
    }
    return true;
  };
  if (!starts("GPU-") && !starts("MIG-")) return false;
  unsigned char bytes[16] = {};
  std::size_t digits = 0;
  for (text += 4; *text != 0; ++text) {
    unsigned value = 0;
    if (*text == '-') continue;
    if (*text >= '0' && *text <= '9') {
      value = static_cast<unsigned>(*text - '0');
    } else if ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'f') {
      value = static_cast<unsigned>((*text | 0x20) - 'a' + 10);
    } else {
      return false;
    }
    if (digits == kDigits) return false;
    bytes[digits / 2] = static_cast<unsigned char>((unsigned{bytes[digits / 2]} << 4U) | value);
    ++digits;
  }
  if (digits != kDigits) return false;
  __builtin_memcpy(uuid, bytes, sizeof bytes);
  return true;
}

// "GPU-" or "MIG-", and the rest.
inline void print_uuid(const char* kind, const std::uint64_t (&uuid)[2], char (&text)[41]) {
  constexpr const char* kHex = "0123456789abcdef";
  unsigned char bytes[16];
  __builtin_memcpy(bytes, uuid, sizeof bytes);
  std::size_t at = 0;
  for (; at < 3; ++at) text[at] = kind[at];
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = kHex[bytes[i] >> 4U];
    text[at++] = kHex[bytes[i] & 15U];
  }
  text[at] = 0;
}

}  // namespace assay::gpu
