// The vector kernels' common part: BLAKE3's compression on Isa::kLanes rows at once, one row per
// lane. Each kernel's file supplies Isa, the operations that depend on its instruction set.
//
// Files that include this are compiled with instructions that the processor may not have. So they
// must not define any symbol that the linker could merge with one of another file: Isa is in an
// unnamed namespace, which makes these templates local, and no inline function of the standard
// library is called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hash/format.h"
#include "hash/kernel.h"

#define ASSAY_INLINE [[gnu::always_inline]] static inline
// Arrays of vectors stay in registers only if every index is a constant.
#define ASSAY_UNROLL _Pragma("GCC unroll 16")

namespace assay::hash {

// Loads the message transposed: m[i] holds word i of every row.
template <class Isa>
ASSAY_INLINE void load_message(const std::byte* const* rows, std::size_t offset,
                               typename Isa::Vec* m) {
  constexpr std::size_t kLanes = Isa::kLanes;
  ASSAY_UNROLL for (std::size_t group = 0; group < 16; group += kLanes) {
    ASSAY_UNROLL for (std::size_t lane = 0; lane < kLanes; ++lane) {
      m[group + lane] = Isa::load(rows[lane] + offset + group * sizeof(std::uint32_t));
    }
    Isa::transpose(m + group);
  }
}

// Half a round: four quarter rounds interleaved, so that each hides the others' latency. b, c and d
// are rotated by Turn: 0 mixes columns, 1 diagonals.
template <class Isa, int Round, int Turn>
ASSAY_INLINE void mix_four(typename Isa::Vec* v, const typename Isa::Vec* m) {
  constexpr const int* kWord = kSchedule.word[Round] + 8 * Turn;
  constexpr int a[4] = {0, 1, 2, 3};
  constexpr int b[4] = {4 + (0 + Turn) % 4, 4 + (1 + Turn) % 4, 4 + (2 + Turn) % 4,
                        4 + (3 + Turn) % 4};
  constexpr int c[4] = {8 + (0 + 2 * Turn) % 4, 8 + (1 + 2 * Turn) % 4, 8 + (2 + 2 * Turn) % 4,
                        8 + (3 + 2 * Turn) % 4};
  constexpr int d[4] = {12 + (0 + 3 * Turn) % 4, 12 + (1 + 3 * Turn) % 4, 12 + (2 + 3 * Turn) % 4,
                        12 + (3 + 3 * Turn) % 4};
#define ASSAY_FOUR(statement)                \
  ASSAY_UNROLL for (int i = 0; i < 4; ++i) { \
    statement;                               \
  }
  ASSAY_FOUR(v[a[i]] = Isa::add(v[a[i]], m[kWord[2 * i]]))
  ASSAY_FOUR(v[a[i]] = Isa::add(v[a[i]], v[b[i]]))
  ASSAY_FOUR(v[d[i]] = Isa::template rotate<16>(Isa::exclusive_or(v[d[i]], v[a[i]])))
  ASSAY_FOUR(v[c[i]] = Isa::add(v[c[i]], v[d[i]]))
  ASSAY_FOUR(v[b[i]] = Isa::template rotate<12>(Isa::exclusive_or(v[b[i]], v[c[i]])))
  ASSAY_FOUR(v[a[i]] = Isa::add(v[a[i]], m[kWord[2 * i + 1]]))
  ASSAY_FOUR(v[a[i]] = Isa::add(v[a[i]], v[b[i]]))
  ASSAY_FOUR(v[d[i]] = Isa::template rotate<8>(Isa::exclusive_or(v[d[i]], v[a[i]])))
  ASSAY_FOUR(v[c[i]] = Isa::add(v[c[i]], v[d[i]]))
  ASSAY_FOUR(v[b[i]] = Isa::template rotate<7>(Isa::exclusive_or(v[b[i]], v[c[i]])))
#undef ASSAY_FOUR
}

// Also prefetches this round's share of what the next call will read, because one stream per lane
// is more than the hardware prefetcher can follow.
template <class Isa, int Round>
ASSAY_INLINE void mix_round(typename Isa::Vec* v, const typename Isa::Vec* m,
                            const std::byte* const* rows, std::size_t ahead) {
  constexpr std::size_t kFirst = Round * Isa::kLanes / kRounds;
  constexpr std::size_t kEnd = (Round + 1) * Isa::kLanes / kRounds;
  ASSAY_UNROLL for (std::size_t i = kFirst; i < kEnd; ++i) __builtin_prefetch(rows[i] + ahead);
  mix_four<Isa, Round, 0>(v, m);
  mix_four<Isa, Round, 1>(v, m);
}

template <class Isa>
ASSAY_INLINE void hash_rows_wide(const Rows& rows, std::size_t count, std::byte* values) {
  using Vec = typename Isa::Vec;
  constexpr std::size_t kLanes = Isa::kLanes;
  // Lanes without a row repeat the last one: that is safe to read, and cheaper than narrower code.
  const std::byte* row[kLanes];
  alignas(64) std::uint32_t counter_low[kLanes];
  alignas(64) std::uint32_t counter_high[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t i = lane < count ? lane : count - 1;
    const std::uint64_t counter = rows.counter + i * rows.counter_step;
    row[lane] = rows.data + i * rows.stride;
    counter_low[lane] = static_cast<std::uint32_t>(counter);
    counter_high[lane] = static_cast<std::uint32_t>(counter >> 32);
  }

  Vec h[8];
  ASSAY_UNROLL for (int i = 0; i < 8; ++i) h[i] = Isa::set(kInitial[i]);
  std::uint32_t flags = rows.flags | rows.first_flags;
  for (std::size_t block = 0; block < rows.blocks; ++block) {
    if (block + 1 == rows.blocks) flags |= rows.last_flags;
    Vec m[16];
    load_message<Isa>(row, block * kBlockBytes, m);
    Vec v[16] = {h[0],
                 h[1],
                 h[2],
                 h[3],
                 h[4],
                 h[5],
                 h[6],
                 h[7],
                 Isa::set(kInitial[0]),
                 Isa::set(kInitial[1]),
                 Isa::set(kInitial[2]),
                 Isa::set(kInitial[3]),
                 Isa::load(reinterpret_cast<const std::byte*>(counter_low)),
                 Isa::load(reinterpret_cast<const std::byte*>(counter_high)),
                 Isa::set(kBlockBytes),
                 Isa::set(flags)};
    static_assert(kRounds == 7);
    const std::size_t ahead = kLanes * rows.stride + block * kBlockBytes;
    mix_round<Isa, 0>(v, m, row, ahead);
    mix_round<Isa, 1>(v, m, row, ahead);
    mix_round<Isa, 2>(v, m, row, ahead);
    mix_round<Isa, 3>(v, m, row, ahead);
    mix_round<Isa, 4>(v, m, row, ahead);
    mix_round<Isa, 5>(v, m, row, ahead);
    mix_round<Isa, 6>(v, m, row, ahead);
    ASSAY_UNROLL for (int i = 0; i < 8; ++i) h[i] = Isa::exclusive_or(v[i], v[8 + i]);
    flags = rows.flags;
  }

  alignas(64) std::byte all[kLanes * kChainingBytes];
  std::byte* out = count == kLanes ? values : all;
  Isa::store_values(h, out);
  if (out == all) __builtin_memcpy(values, all, count * kChainingBytes);
}

}  // namespace assay::hash
