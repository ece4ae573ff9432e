// The text formats of /proc and /sys. Anything malformed is nullopt: an unknown fact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace assay::machine {

// The whole text as a number; hexadecimal with or without "0x".
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<std::int64_t> parse_hex(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// parse_int() where a small count or id is expected: nullopt outside [low, high].
std::optional<int> parse_small(std::string_view text, int low, int high);

// Pieces between separators, empty ones included; always at least one piece.
std::vector<std::string_view> split(std::string_view text, char separator);
// Pieces between runs of spaces and tabs.
std::vector<std::string_view> split_blanks(std::string_view text);

// "0-3,8" -> {0,1,2,3,8}, and back. An empty text is an empty list.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);
std::string format_cpu_list(const std::vector<int>& cpus);

// What follows "key<space>:" at the start of a line; the first such line counts.
std::optional<std::string_view> field(std::string_view text, std::string_view key);
// The size in a line such as "MemTotal: 24 kB".
std::optional<base::Bytes> kib_field(std::string_view text, std::string_view key);

// "32.0 GT/s PCIe" -> 5.
std::optional<int> parse_pcie_generation(std::string_view text);
// "400 Gb/sec (4X NDR)".
std::optional<base::BytesPerSecond> parse_infiniband_rate(std::string_view text);

}  // namespace assay::machine
