// This process in the region: what process.cc (the region, blocks of threads) and slots.cc (whose
// slot is whose, and which owners have exited) share. No other file includes it.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {

struct Process {
  std::atomic<int> state{0};
  wire::GpuRegion* region = nullptr;
  int file = -1;
  dev_t device = 0;  // of the file, to know it again
  ino_t inode = 0;
  std::atomic<int> slot{-1};
  SpinLock lock;           // for what follows
  std::uint32_t idle = 0;  // blocks of threads that have ended: block + 1
  bool full = false;       // there is no free block, and no need to search again
  pthread_key_t key = 0;
  bool has_key = false;
  bool follows_forks = false;
};
extern constinit Process process;

inline constexpr std::size_t kPathSize = 4096;
extern char region_path[kPathSize];

// Away from the numbers that programs expect to be given.
int move_up(int file);

// A number below the end, or the end if there are none left.
std::uint32_t ticket(std::atomic<std::uint32_t>& next, std::uint32_t end);

// slots.cc: all with the lock held.
bool claim_slot();
// A block of this number is this process's from now on.
void own(std::uint32_t block);
// Makes blocks of processes that are gone this process's, where their slot has no new owner.
void adopt_blocks();

}  // namespace assay::gpu
