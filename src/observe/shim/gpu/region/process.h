// This process in the region: shared by process.cc (the region, blocks of threads) and slots.cc
// (slots and their owners). No other file includes it.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {

struct ProcessState {
  std::atomic<int> state{0};
  wire::GpuRegion* region = nullptr;
  int file = -1;
  dev_t device = 0;  // of the file, to recognise it
  ino_t inode = 0;
  std::atomic<int> slot{-1};
  SpinLock lock;           // for the members below
  std::uint32_t idle = 0;  // blocks of threads that have ended: block + 1
  bool full = false;       // there is no free block; do not search again
  pthread_key_t key = 0;
  bool has_key = false;
  bool follows_forks = false;
};
extern constinit ProcessState process;

inline constexpr std::size_t kPathSize = 4096;
extern char region_path[kPathSize];

// Duplicates the descriptor to a high number, above those that programs expect to get.
int move_up(int file);

// Takes the next index below `end`, or returns `end` if none is left.
std::uint32_t ticket(std::atomic<std::uint32_t>& next, std::uint32_t end);

// slots.cc: all need the lock.
bool claim_slot();
// Assigns the block with this index to this process.
void own(std::uint32_t block);
// Takes over blocks of exited processes whose slot has no new owner.
void adopt_blocks();

}  // namespace assay::gpu
