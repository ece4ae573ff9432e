#include "report/sha256.h"

#include <bit>
#include <cmath>

namespace assay::report {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kRounds = 64;

using Words = std::array<std::uint32_t, 8>;

// The constants are the first 32 bits of the fractions of square and cube roots of primes. They are
// computed rather than listed: a typing mistake in a list would go unseen.
struct Constants {
  Words start{};
  std::array<std::uint32_t, kRounds> round{};

  Constants() {
    std::size_t found = 0;
    for (std::uint32_t n = 2; found < kRounds; ++n) {
      bool prime = true;
      for (std::uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      const auto fraction = [](long double root) {
        return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
      };
      if (found < start.size()) start[found] = fraction(std::sqrt(static_cast<long double>(n)));
      round[found++] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
};

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8U | static_cast<std::uint8_t>(bytes[i]);
  return word;
}

void mix(Words& state, const char* block) {
  static const Constants constants;
  std::array<std::uint32_t, kRounds> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (std::size_t i = 16; i < kRounds; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U);
  }
  Words s = state;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::uint32_t e = s[4];
    const std::uint32_t a = s[0];
    const std::uint32_t one = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & s[5]) ^ (~e & s[6])) + constants.round[i] + w[i];
    const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                              ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += s[i];
}

}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view text) {
  Words state = Constants().start;
  std::string padded(text.substr(text.size() / kBlockBytes * kBlockBytes));
  padded += '\x80';
  while (padded.size() % kBlockBytes != kBlockBytes - 8) padded += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift & 0xFFU);
  for (std::size_t at = 0; at + kBlockBytes <= text.size(); at += kBlockBytes) {
    mix(state, text.data() + at);
  }
  for (std::size_t at = 0; at < padded.size(); at += kBlockBytes) mix(state, padded.data() + at);
  std::array<std::uint8_t, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)) & 0xFFU);
  }
  return digest;
}

std::string policy_hash(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string hash = "sha256-";
  const auto digest = sha256(text);
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      three = three << 8U | (i + j < digest.size() ? digest[i + j] : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool there = i + j <= digest.size();
      hash += there ? kDigits[three >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return hash;
}

}  // namespace assay::report
