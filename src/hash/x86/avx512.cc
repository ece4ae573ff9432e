// Sixteen rows at once, with AVX-512 (the F part is enough).
#include <immintrin.h>

#include "hash/x86/kernels.h"
#include "hash/x86/wide.h"

namespace assay::hash {
namespace {

struct Avx512 {
  using Vec = __m512i;
  static constexpr std::size_t kLanes = 16;

  ASSAY_INLINE Vec load(const std::byte* from) { return _mm512_loadu_si512(from); }
  ASSAY_INLINE Vec set(std::uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  ASSAY_INLINE Vec add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
  ASSAY_INLINE Vec exclusive_or(Vec a, Vec b) { return _mm512_xor_si512(a, b); }
  template <int kBits>
  ASSAY_INLINE Vec rotate(Vec v) {
    return _mm512_ror_epi32(v, kBits);
  }

  // Word i of vector j becomes word j of vector i: pairs of words, then of pairs, then of quarters,
  // then of halves.
  ASSAY_INLINE void transpose(Vec* v) {
    Vec words[16];
    ASSAY_UNROLL for (int i = 0; i < 16; i += 2) {
      words[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
      words[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    Vec pairs[16];
    ASSAY_UNROLL for (int i = 0; i < 16; i += 4) {
      pairs[i] = _mm512_unpacklo_epi64(words[i], words[i + 2]);
      pairs[i + 1] = _mm512_unpackhi_epi64(words[i], words[i + 2]);
      pairs[i + 2] = _mm512_unpacklo_epi64(words[i + 1], words[i + 3]);
      pairs[i + 3] = _mm512_unpackhi_epi64(words[i + 1], words[i + 3]);
    }
    // pairs[4j + i] has the words i, 4 + i, 8 + i, 12 + i of rows 4j to 4j + 3, in its quarters.
    ASSAY_UNROLL for (int i = 0; i < 4; ++i) {
      const Vec low_even = _mm512_shuffle_i32x4(pairs[i], pairs[4 + i], 0x88);
      const Vec low_odd = _mm512_shuffle_i32x4(pairs[i], pairs[4 + i], 0xdd);
      const Vec high_even = _mm512_shuffle_i32x4(pairs[8 + i], pairs[12 + i], 0x88);
      const Vec high_odd = _mm512_shuffle_i32x4(pairs[8 + i], pairs[12 + i], 0xdd);
      v[i] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
      v[4 + i] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
      v[8 + i] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
      v[12 + i] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
  }

  ASSAY_INLINE void store_values(const Vec* h, std::byte* to) {
    Vec rows[16];
    ASSAY_UNROLL for (int i = 0; i < 16; ++i) rows[i] = i < 8 ? h[i] : _mm512_setzero_si512();
    transpose(rows);
    ASSAY_UNROLL for (std::size_t row = 0; row < kLanes; ++row) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + row * kChainingBytes),
                          _mm512_castsi512_si256(rows[row]));
    }
  }
};

void hash_rows(const Rows& rows, std::size_t count, std::byte* values) {
  hash_rows_wide<Avx512>(rows, count, values);
}

}  // namespace

constinit const Kernel kAvx512Kernel{"avx512", Avx512::kLanes, hash_rows};

}  // namespace assay::hash
