// A device's UUID: 16 bytes as the driver returns them and the GPU region holds them, and as text
// as NVML writes it ("GPU-…", "MIG-…").
//
// parse_uuid and print_uuid are used inside the target process: no allocation, no library calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::wire {

using GpuUuid = std::array<std::uint64_t, 2>;
inline constexpr std::size_t kGpuUuidTextSize = 40;

// From "GPU-…" or "MIG-…", in either case, with 32 hexadecimal digits. Slices of older drivers
// ("MIG-GPU-…/1/0") have no UUID of their own.
inline std::optional<GpuUuid> parse_uuid(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  const auto starts_with = [&](const char* kind) {
    return lower(text[0]) == kind[0] && lower(text[1]) == kind[1] && lower(text[2]) == kind[2] &&
           text[3] == '-';
  };
  if (text.size() <= 4 || (!starts_with("gpu") && !starts_with("mig"))) return std::nullopt;
  unsigned char bytes[kDigits / 2] = {};
  std::size_t digits = 0;
  for (std::size_t i = 4; i < text.size(); ++i) {
    if (text[i] == '-') continue;
    unsigned value = 0;
    if (text[i] >= '0' && text[i] <= '9') {
      value = static_cast<unsigned>(text[i] - '0');
    } else if (lower(text[i]) >= 'a' && lower(text[i]) <= 'f') {
      value = static_cast<unsigned>(lower(text[i]) - 'a' + 10);
    } else {
      return std::nullopt;
    }
    if (digits == kDigits) return std::nullopt;
    bytes[digits / 2] = static_cast<unsigned char>((unsigned{bytes[digits / 2]} << 4U) | value);
    ++digits;
  }
  if (digits != kDigits) return std::nullopt;
  GpuUuid uuid{};
  __builtin_memcpy(uuid.data(), bytes, sizeof bytes);
  return uuid;
}

// `kind` is "GPU" or "MIG". The text is terminated.
inline void print_uuid(const char* kind, const GpuUuid& uuid, char (&text)[kGpuUuidTextSize + 1]) {
  constexpr const char* kHex = "0123456789abcdef";
  unsigned char bytes[sizeof(GpuUuid)];
  __builtin_memcpy(bytes, uuid.data(), sizeof bytes);
  std::size_t at = 0;
  for (; at < 3; ++at) text[at] = kind[at];
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = kHex[bytes[i] >> 4U];
    text[at++] = kHex[bytes[i] & 15U];
  }
  text[at] = 0;
}

// "GPU-…", also for MIG slices, which the region does not distinguish. For collectors.
inline std::string uuid_text(const GpuUuid& uuid) {
  char text[kGpuUuidTextSize + 1];
  print_uuid("GPU", uuid, text);
  return text;
}

}  // namespace assay::wire
