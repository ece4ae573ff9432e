// How values are stored in columns: digests, lists of strings, optional integers. Internal to
// src/store.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hash/digest.h"
#include "store/statement.h"

namespace assay::store {

// Strings, each terminated by NUL, as in /proc/PID/cmdline. Not JSON, because arguments may contain
// any byte but NUL.
std::vector<std::byte> packed_strings(std::span<const std::string> strings);
std::vector<std::string> unpacked_strings(std::string_view packed);
std::vector<std::string> strings_at(const Statement& row, int column);

std::span<const std::byte> bytes_of(std::string_view text);
// For bind(): an absent digest becomes NULL.
std::optional<std::span<const std::uint8_t>> bytes_of(const std::optional<hash::Digest>& digest);

// Nothing for NULL, or for a blob of the wrong size.
std::optional<hash::Digest> digest_at(const Statement& row, int column);

template <class Integer = std::int64_t>
std::optional<Integer> optional_integer_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return static_cast<Integer>(row.integer(column));
}

}  // namespace assay::store
