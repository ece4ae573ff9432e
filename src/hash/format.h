// The constants of BLAKE3 (github.com/BLAKE3-team/BLAKE3-specs, sections 2.1 to 2.4): input is cut
// into chunks of 1024 bytes, chunks into blocks of 64; chunks are the leaves of a binary tree whose
// nodes are named by chaining values of 32 bytes. Only the default hash mode is here: nothing in
// Assay needs keys or derived keys.
//
// Also included by the kernels, which must not use inline functions of the library (see wide.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::hash {

inline constexpr std::size_t kBlockBytes = 64;
inline constexpr std::size_t kChunkBytes = 1024;
inline constexpr std::size_t kBlocksPerChunk = kChunkBytes / kBlockBytes;
inline constexpr std::size_t kChainingBytes = 32;

// Flags of a compression: the block's place in the tree.
inline constexpr std::uint32_t kChunkStart = 1;
inline constexpr std::uint32_t kChunkEnd = 2;
inline constexpr std::uint32_t kParent = 4;
inline constexpr std::uint32_t kRoot = 8;

inline constexpr std::uint32_t kInitial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                              0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

inline constexpr int kRounds = 7;

// The order of message words in each round: the specification's permutation, applied once more per
// round.
struct MessageSchedule {
  int word[kRounds][16];
};

constexpr MessageSchedule make_schedule() {
  constexpr int kPermutation[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
  MessageSchedule schedule{};
  for (int i = 0; i < 16; ++i) schedule.word[0][i] = i;
  for (int round = 1; round < kRounds; ++round) {
    for (int i = 0; i < 16; ++i) {
      schedule.word[round][i] = schedule.word[round - 1][kPermutation[i]];
    }
  }
  return schedule;
}

inline constexpr MessageSchedule kSchedule = make_schedule();

}  // namespace assay::hash
