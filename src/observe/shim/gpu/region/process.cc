// This process in the region: its slot, and a block for each thread that counts. Initialized on
// first use, so a process that never uses a GPU does nothing here.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "observe/shim/gpu/region/hami.h"
#include "observe/shim/gpu/region/process.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/size_map.h"

extern "C" {
ASSAY_HIDDEN __thread assay::wire::GpuBlock* assay_gpu_block
    __attribute__((tls_model("initial-exec"))) = nullptr;
}

namespace assay::gpu {

constinit ProcessState process;
char region_path[kPathSize];

namespace {

using wire::GpuBlock;
using wire::GpuRegion;
using wire::kGpuBlocks;

// For threads without a block in the region: never read.
alignas(64) __thread GpuBlock nowhere __attribute__((tls_model("initial-exec"))) = {};

enum State : int { kUnknown, kBusy, kOn, kOff };

char log_path[kPathSize];

void remember_variable(const char* name, char* into) {
  const char* value = getenv(name);
  const std::size_t length = value == nullptr ? kPathSize : strlen(value);
  if (length < kPathSize) memcpy(into, value, length + 1);
}

// The environment at process start: programs change theirs.
__attribute__((constructor)) void read_environment() {
  if (region_path[0] == 0) remember_variable(wire::kGpuRegionVariable, region_path);
  if (log_path[0] == 0) remember_variable(wire::kGpuLogVariable, log_path);
}

void forget_in_child() {
  // The parent's thread that was initializing does not exist in the child.
  if (process.state.load(std::memory_order_relaxed) == kBusy) {
    process.state.store(kUnknown, std::memory_order_relaxed);
  }
  hooks.forget_finders();
  hooks.forget_turns();
  if (process.state.load(std::memory_order_relaxed) == kUnknown) return;
  assay_gpu_block = nullptr;
  if (process.has_key) pthread_setspecific(process.key, nullptr);
  process.lock.reset();
  process.slot.store(-1, std::memory_order_relaxed);
  process.idle = 0;
  process.full = false;
  for (SizeMap* map : kAllMaps) map->forget();
  hooks.forget_limits();
}

// Registered first: a fork may happen while another thread initializes.
__attribute__((constructor)) void follow_forks() {
  process.follows_forks = pthread_atfork(nullptr, nullptr, forget_in_child) == 0;
}

GpuBlock* take_idle() {
  if (process.idle == 0) return nullptr;
  GpuBlock& block = process.region->blocks[process.idle - 1];
  process.idle = block.next.load(std::memory_order_relaxed);
  return &block;
}

GpuBlock* take_block() {
  if (process.full || (process.slot.load() < 0 && !claim_slot())) {
    process.full = true;
    return nullptr;
  }
  if (GpuBlock* idle = take_idle(); idle != nullptr) return idle;
  const auto end = static_cast<std::uint32_t>(kGpuBlocks);
  const std::uint32_t number = ticket(process.region->header.next_block, end);
  if (number < end) {
    own(number);
    return &process.region->blocks[number];
  }
  adopt_blocks();
  GpuBlock* adopted = take_idle();
  process.full = adopted == nullptr;
  return adopted;
}

// A thread has ended: the next thread gets its block and continues its counts.
void return_block(void* ended) {
  assay_gpu_block = nullptr;
  auto* block = static_cast<GpuBlock*>(ended);
  if (!process.lock.try_lock_bounded()) return;
  block->next.store(process.idle, std::memory_order_relaxed);
  process.idle = static_cast<std::uint32_t>(block - process.region->blocks) + 1;
  process.full = false;
  process.lock.unlock();
}

GpuRegion* attach() {
  read_environment();
  const bool from_hami = region_path[0] == 0 && hami_wants_region();
  if (region_path[0] == 0 && !from_hami) return nullptr;
  const int opened = from_hami ? open_hami_region(region_path, sizeof region_path)
                               : open(region_path, O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (opened < 0) {
    if (!from_hami)
      log_line("the region cannot be opened: limits are not enforced in this process");
    return nullptr;
  }
  const int file = move_up(opened);
  struct stat status {};
  void* memory = MAP_FAILED;
  if (fstat(file, &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) >= sizeof(GpuRegion)) {
    memory = mmap(nullptr, sizeof(GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  auto* found = static_cast<GpuRegion*>(memory);
  if (!wire::is_valid(found->header, static_cast<std::uint64_t>(status.st_size)) ||
      !process.follows_forks) {
    munmap(memory, sizeof(GpuRegion));
    close(file);
    return nullptr;
  }
  process.file = file;
  process.device = status.st_dev;
  process.inode = status.st_ino;
  process.has_key = pthread_key_create(&process.key, return_block) == 0;
  process.region = found;
  if (from_hami) set_hami_limits();
  return found;
}

}  // namespace

void log_line(const char* what) {
  if (log_path[0] == 0) return;
  const int file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
  if (file < 0) return;
  char line[512];
  const int size = snprintf(line, sizeof line, "assay-gpu[%d]: %s\n", getpid(), what);
  const ssize_t written = write(file, line, static_cast<std::size_t>(size));
  (void)written;
  close(file);
}

GpuRegion* region() {
  int state = process.state.load(std::memory_order_acquire);
  if (state == kOn) return process.region;
  if (state == kOff) return nullptr;
  if (state == kUnknown && process.state.compare_exchange_strong(state, kBusy)) {
    const int error = errno;
    process.region = attach();
    process.state.store(process.region != nullptr ? kOn : kOff, std::memory_order_release);
    log_line(process.region != nullptr ? "counting" : "no region: nothing is counted");
    errno = error;
    return process.region;
  }
  for (int round = 0; round < 100'000; ++round) {
    state = process.state.load(std::memory_order_acquire);
    if (state == kOn) return process.region;
    if (state == kOff) return nullptr;
    sched_yield();
  }
  return nullptr;
}

int slot() {
  return process.slot.load(std::memory_order_acquire);
}

GpuBlock& block_of_thread() {
  const int error = errno;
  GpuBlock* mine = nullptr;
  if (region() != nullptr) {
    if (process.lock.try_lock_bounded()) {
      mine = take_block();
      process.lock.unlock();
    }
    if (mine == nullptr) process.region->header.lost_threads.fetch_add(1);
  }
  if (mine != nullptr && process.has_key) pthread_setspecific(process.key, mine);
  assay_gpu_block = mine != nullptr ? mine : &nowhere;
  errno = error;
  return *assay_gpu_block;
}

}  // namespace assay::gpu
