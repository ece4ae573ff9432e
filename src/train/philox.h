// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): four random words
// from a key and a counter, without state, so any element of any stream is computed directly. For
// weights and sampling; the order of tokens uses train/data/mix.h, statistics and simulation use
// base/random_draws.h.
#pragma once

#include <array>
#include <cstdint>

// Also compiled for GPUs, which compute the same words.
#ifdef __CUDACC__
#define ASSAY_HOST_AND_DEVICE __host__ __device__
#else
#define ASSAY_HOST_AND_DEVICE
#endif

namespace assay::train {

struct PhiloxWords {
  std::uint32_t word[4];
};

ASSAY_HOST_AND_DEVICE inline PhiloxWords philox_words(std::uint64_t key, std::uint64_t low,
                                                      std::uint64_t high) {
  constexpr std::uint64_t kFirst = 0xD2511F53U;
  constexpr std::uint64_t kSecond = 0xCD9E8D57U;
  PhiloxWords c{{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32U),
                 static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32U)}};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kFirst * c.word[0];
    const std::uint64_t b = kSecond * c.word[2];
    c = {{static_cast<std::uint32_t>(b >> 32U) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32U) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(a)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

inline std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                           const std::array<std::uint64_t, 2>& counter) {
  const PhiloxWords words = philox_words(key, counter[0], counter[1]);
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

}  // namespace assay::train
