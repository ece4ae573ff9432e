// Eight rows at once, with AVX2.
#include <immintrin.h>

#include "hash/x86/kernels.h"
#include "hash/x86/wide.h"

namespace assay::hash {
namespace {

struct Avx2 {
  using Vec = __m256i;
  static constexpr std::size_t kLanes = 8;

  ASSAY_INLINE Vec load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  ASSAY_INLINE Vec set(std::uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  ASSAY_INLINE Vec add(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
  ASSAY_INLINE Vec exclusive_or(Vec a, Vec b) { return _mm256_xor_si256(a, b); }

  // AVX2 has no rotate instruction; rotation by whole bytes is one shuffle.
  template <int kBits>
  ASSAY_INLINE Vec rotate(Vec v) {
    if constexpr (kBits == 16) {
      return _mm256_shuffle_epi8(
          v, _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,  //
                              2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    } else if constexpr (kBits == 8) {
      return _mm256_shuffle_epi8(
          v, _mm256_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12,  //
                              1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12));
    } else {
      return _mm256_or_si256(_mm256_srli_epi32(v, kBits), _mm256_slli_epi32(v, 32 - kBits));
    }
  }

  // Word i of vector j becomes word j of vector i: pairs of words, then of pairs, then of halves.
  ASSAY_INLINE void transpose(Vec* v) {
    Vec words[8];
    ASSAY_UNROLL for (int i = 0; i < 8; i += 2) {
      words[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
      words[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    Vec pairs[8];
    ASSAY_UNROLL for (int i = 0; i < 8; i += 4) {
      pairs[i] = _mm256_unpacklo_epi64(words[i], words[i + 2]);
      pairs[i + 1] = _mm256_unpackhi_epi64(words[i], words[i + 2]);
      pairs[i + 2] = _mm256_unpacklo_epi64(words[i + 1], words[i + 3]);
      pairs[i + 3] = _mm256_unpackhi_epi64(words[i + 1], words[i + 3]);
    }
    ASSAY_UNROLL for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_permute2x128_si256(pairs[i], pairs[i + 4], 0x20);
      v[i + 4] = _mm256_permute2x128_si256(pairs[i], pairs[i + 4], 0x31);
    }
  }

  ASSAY_INLINE void store_values(Vec* h, std::byte* to) {
    transpose(h);
    ASSAY_UNROLL for (std::size_t row = 0; row < kLanes; ++row) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + row * kChainingBytes), h[row]);
    }
  }
};

void hash_rows(const Rows& rows, std::size_t count, std::byte* values) {
  hash_rows_wide<Avx2>(rows, count, values);
}

}  // namespace

constinit const Kernel kAvx2Kernel{"avx2", Avx2::kLanes, hash_rows};

}  // namespace assay::hash
