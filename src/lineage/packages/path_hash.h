// 64 bits that stand for a path in the tables of packages. Not for anything an adversary could gain
// by: a collision names a package that was not used.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::lineage {

inline constexpr std::uint64_t kPathHashStart = 0xcbf29ce484222325U;

// FNV-1a, continued from `hash`.
inline std::uint64_t path_hash_more(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

// Its low bits are as good as its high ones; never 0, which marks an empty place in tables.
inline std::uint64_t path_hash_end(std::uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93U;
  hash ^= hash >> 32;
  return hash == 0 ? 1 : hash;
}

inline std::uint64_t path_hash(std::string_view path) {
  return path_hash_end(path_hash_more(kPathHashStart, path));
}

}  // namespace assay::lineage
