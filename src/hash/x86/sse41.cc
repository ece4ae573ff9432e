// Four rows at once, with SSE4.1.
#include <immintrin.h>

#include "hash/x86/kernels.h"
#include "hash/x86/wide.h"

namespace assay::hash {
namespace {

struct Sse41 {
  using Vec = __m128i;
  static constexpr std::size_t kLanes = 4;

  ASSAY_INLINE Vec load(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  ASSAY_INLINE void store(std::byte* to, Vec v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v);
  }
  ASSAY_INLINE Vec set(std::uint32_t word) { return _mm_set1_epi32(static_cast<int>(word)); }
  ASSAY_INLINE Vec add(Vec a, Vec b) { return _mm_add_epi32(a, b); }
  ASSAY_INLINE Vec exclusive_or(Vec a, Vec b) { return _mm_xor_si128(a, b); }

  // SSE has no rotate instruction; rotation by whole bytes is one shuffle.
  template <int kBits>
  ASSAY_INLINE Vec rotate(Vec v) {
    if constexpr (kBits == 16) {
      return _mm_shuffle_epi8(v,
                              _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    } else if constexpr (kBits == 8) {
      return _mm_shuffle_epi8(v,
                              _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12));
    } else {
      return _mm_or_si128(_mm_srli_epi32(v, kBits), _mm_slli_epi32(v, 32 - kBits));
    }
  }

  // Word i of vector j becomes word j of vector i.
  ASSAY_INLINE void transpose(Vec* v) {
    const Vec a = _mm_unpacklo_epi32(v[0], v[1]);
    const Vec b = _mm_unpackhi_epi32(v[0], v[1]);
    const Vec c = _mm_unpacklo_epi32(v[2], v[3]);
    const Vec d = _mm_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm_unpacklo_epi64(a, c);
    v[1] = _mm_unpackhi_epi64(a, c);
    v[2] = _mm_unpacklo_epi64(b, d);
    v[3] = _mm_unpackhi_epi64(b, d);
  }

  ASSAY_INLINE void store_values(Vec* h, std::byte* to) {
    transpose(h);
    transpose(h + 4);
    ASSAY_UNROLL for (std::size_t row = 0; row < kLanes; ++row) {
      store(to + row * kChainingBytes, h[row]);
      store(to + row * kChainingBytes + 16, h[4 + row]);
    }
  }
};

void hash_rows(const Rows& rows, std::size_t count, std::byte* values) {
  hash_rows_wide<Sse41>(rows, count, values);
}

}  // namespace

constinit const Kernel kSse41Kernel{"sse4.1", Sse41::kLanes, hash_rows};

}  // namespace assay::hash
