// Opens that this process has recorded already, so that repeated opens of a file cost nothing more.
// A table of 64-bit keys in which a key overwrites another in its slot: the worst result is a
// redundant record.
#pragma once

#include <cstdint>

#include "observe/shim/shim.h"

namespace assay::shim {

__extension__ typedef unsigned __int128 Product;

// Both halves of the product of two words, so that every bit of the key depends on every bit.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Product product = Product{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

inline std::uint64_t load_word(const char* from) {
  std::uint64_t value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// Which file a path refers to depends on the epoch and, if it is relative, on the number of
// directory changes (`moves`); this stands for `moves` of an absolute path.
inline constexpr std::uint64_t kAbsolute = ~std::uint64_t{0};

// Never 0.
inline std::uint64_t recorded_key(const char* path, std::size_t length, std::uint64_t epoch,
                                  std::uint64_t moves) {
  constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15;    // the golden ratio in 64 bits
  constexpr std::uint64_t kOther = 0xB7E1'5162'8AED'2A6B;  // e
  std::uint64_t key = fold(epoch ^ kOdd, kOther) + length;
  key = fold(key ^ moves, kOdd) + kOther;
  std::size_t at = 0;
  for (; at + 8 <= length; at += 8) key = fold(key ^ load_word(path + at), kOdd) + kOther;
  std::uint64_t rest = 0;
  if (length >= 8) {
    rest = load_word(path + length - 8);  // overlapping bytes are harmless
  } else {
    for (; at < length; ++at) rest = (rest << 8U) | static_cast<unsigned char>(path[at]);
  }
  key = fold(key ^ rest, kOther);
  return key == 0 ? 1 : key;
}

// The part of the table in use grows with the number of keys: most processes open few files and
// should not touch more pages than needed.
inline std::atomic<std::uint64_t>& recorded_place(std::uint64_t key) {
  const std::uint32_t inserted = shim.local->inserted.load(std::memory_order_relaxed);
  std::uint32_t size = kRecordedAtFirst;
  if (inserted >= kRecordedAtFirst / 2) size *= 8;
  if (inserted >= kRecordedAtFirst * 4) size = kRecorded;
  return shim.local->recorded[key & (size - 1)];
}

inline bool is_recorded(std::uint64_t key) {
  return recorded_place(key).load(std::memory_order_relaxed) == key;
}

inline void remember(std::uint64_t key) {
  shim.local->inserted.fetch_add(1, std::memory_order_relaxed);
  recorded_place(key).store(key, std::memory_order_relaxed);
}

}  // namespace assay::shim
