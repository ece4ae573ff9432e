#include "hash/kernel.h"

#include <bit>
#include <cstring>

namespace assay::hash {
namespace {

std::uint32_t little_endian(std::uint32_t word) {
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
  return word;
}

// The quarter round on one column or diagonal, with two words of the message.
inline void mix(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d,
                std::uint32_t x, std::uint32_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 12);
  a += b + y;
  d = std::rotr(d ^ a, 8);
  c += d;
  b = std::rotr(b ^ c, 7);
}

void hash_rows(const Rows& rows, std::size_t count, std::byte* chaining_values) {
  for (std::size_t row = 0; row < count; ++row) {
    const std::byte* block = rows.data + row * rows.stride;
    Words chaining;
    std::memcpy(chaining, kInitial, sizeof chaining);
    for (std::size_t i = 0; i < rows.blocks; ++i, block += kBlockBytes) {
      const std::uint32_t flags = rows.flags | (i == 0 ? rows.first_flags : 0) |
                                  (i + 1 == rows.blocks ? rows.last_flags : 0);
      compress(chaining, block, kBlockBytes, rows.counter + row * rows.counter_step, flags);
    }
    store_words(chaining, chaining_values + row * kChainingBytes);
  }
}

}  // namespace

void compress(Words& chaining, const std::byte* block, std::uint32_t block_bytes,
              std::uint64_t counter, std::uint32_t flags) {
  std::uint32_t m[16];
  std::memcpy(m, block, sizeof m);
  for (std::uint32_t& word : m) word = little_endian(word);
  std::uint32_t v[16];
  for (int i = 0; i < 8; ++i) v[i] = chaining[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = kInitial[i];
  v[12] = static_cast<std::uint32_t>(counter);
  v[13] = static_cast<std::uint32_t>(counter >> 32);
  v[14] = block_bytes;
  v[15] = flags;
  for (const auto& s : kSchedule.word) {
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; ++i) chaining[i] = v[i] ^ v[8 + i];
}

void store_words(const Words& words, std::byte* bytes) {
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t word = little_endian(words[i]);
    std::memcpy(bytes + i * sizeof word, &word, sizeof word);
  }
}

constinit const Kernel kPortableKernel{"portable", 1, hash_rows};

}  // namespace assay::hash
