// This process in the region: its slot, a block for each thread that counts. Everything happens
// when it is first needed, so a process that never touches a GPU does nothing here.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/size_map.h"
#include "observe/shim/gpu/spin_lock.h"

extern "C" {
ASSAY_HIDDEN __thread assay::wire::GpuBlock* assay_gpu_block
    __attribute__((tls_model("initial-exec"))) = nullptr;
}

namespace assay::gpu {
namespace {

using wire::GpuBlock;
using wire::GpuRegion;
using wire::GpuSlot;
using wire::kGpuBlocks;
using wire::kGpuSlots;

// Where a thread counts that has no place in the region: nobody reads it.
alignas(64) __thread GpuBlock nowhere __attribute__((tls_model("initial-exec"))) = {};

enum State : int { kUnknown, kBusy, kOn, kOff };

struct Process {
  std::atomic<int> state{kUnknown};
  GpuRegion* region = nullptr;
  int file = -1;
  dev_t device = 0;  // of the file, to know it again
  ino_t inode = 0;
  std::atomic<int> slot{-1};
  SpinLock lock;           // for what follows
  std::uint32_t idle = 0;  // blocks of threads that have ended: block + 1
  bool full = false;       // there is no block to be had, and nobody need look again
  pthread_key_t key = 0;
  bool has_key = false;
};
constinit Process process;

constexpr std::size_t kPathSize = 4096;
char region_path[kPathSize];
char log_path[kPathSize];

void remember_variable(const char* name, char* into) {
  const char* value = getenv(name);
  const std::size_t length = value == nullptr ? kPathSize : strlen(value);
  if (length < kPathSize) memcpy(into, value, length + 1);
}

// The environment as the process got it: programs change theirs.
__attribute__((constructor)) void read_environment() {
  if (region_path[0] == 0) remember_variable(wire::kGpuRegionVariable, region_path);
  if (log_path[0] == 0) remember_variable(wire::kGpuLogVariable, log_path);
}

void forget_in_child() {
  assay_gpu_block = nullptr;
  if (process.has_key) pthread_setspecific(process.key, nullptr);
  process.lock.reset();
  process.slot.store(-1, std::memory_order_relaxed);
  process.idle = 0;
  process.full = false;
  for (SizeMap* map : kAllMaps) map->forget();
}

// Away from the numbers that programs expect to be given.
int move_up(int file) {
  constexpr int kFrom = 200;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, kFrom);
  if (moved < 0) return file;
  close(file);
  return moved;
}

// Programs close descriptors that they do not know, and are given the number again for a file of
// their own, which must never be locked.
bool file_is_ours() {
  struct stat status {};
  const auto same_file = [&](int file) {
    return fstat(file, &status) == 0 && status.st_dev == process.device &&
           status.st_ino == process.inode;
  };
  if (same_file(process.file)) return true;
  const int opened = open(region_path, O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (opened < 0) return false;
  const int file = move_up(opened);
  if (!same_file(file)) {
    close(file);
    return false;
  }
  process.file = file;
  return true;
}

bool lock_byte(std::size_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return fcntl(process.file, F_SETLK, &lock) == 0;
}

// Field 22 of /proc/PID/stat; 0: there is no such process.
std::uint64_t start_ticks_of(int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = 0;
  const char* at = strrchr(text, ')');  // the name before it may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
}

std::uint64_t pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool is_alive(const GpuSlot& owner) {
  if (owner.namespace_id.load() != pid_namespace()) return false;  // its number means nothing here
  const std::uint64_t ticks = start_ticks_of(owner.process.load());
  return ticks != 0 && ticks == owner.start_ticks.load();
}

// The slot's lock is ours when this succeeds.
bool take_slot(std::size_t number) {
  GpuSlot& wanted = process.region->slots[number];
  if (!lock_byte(number, F_WRLCK)) return false;
  // Nobody holds the lock; but a program may have closed our descriptor, and lives.
  if (wanted.process.load() != 0 && is_alive(wanted)) {
    lock_byte(number, F_UNLCK);
    return false;
  }
  wanted.process.store(getpid());
  wanted.start_ticks.store(start_ticks_of(getpid()));
  wanted.namespace_id.store(pid_namespace());
  for (auto& used : wanted.used) used.store(0);
  // What the last owner counted stays in its blocks; they are ours to go on with.
  // (Never more than there are: it is memory that others write, too.)
  std::uint32_t at = wanted.blocks.load();
  for (std::size_t i = 0; i < kGpuBlocks && at != 0 && at <= kGpuBlocks; ++i) {
    GpuBlock& block = process.region->blocks[at - 1];
    block.next.store(process.idle);
    process.idle = at;
    at = block.sibling.load();
  }
  process.slot.store(static_cast<int>(number), std::memory_order_release);
  return true;
}

// A number below the end, or the end if there are none left.
std::uint32_t ticket(std::atomic<std::uint32_t>& next, std::uint32_t end) {
  if (next.load(std::memory_order_relaxed) >= end) return end;
  const std::uint32_t given = next.fetch_add(1, std::memory_order_relaxed);
  return given < end ? given : end;
}

bool claim_slot() {
  if (!file_is_ours()) return false;
  const auto end = static_cast<std::uint32_t>(kGpuSlots);
  for (;;) {
    const std::uint32_t number = ticket(process.region->header.next_slot, end);
    if (number == end) break;
    if (take_slot(number)) return true;
  }
  // Not all from the same place: many may be starting.
  const auto first =
      static_cast<std::uint32_t>(wire::gpu_mix(static_cast<std::uint64_t>(getpid())));
  for (std::uint32_t tried = 0; tried < end; ++tried) {
    if (take_slot((first + tried) % end)) return true;
  }
  return false;
}

void own(std::uint32_t number) {
  GpuBlock& block = process.region->blocks[number];
  GpuSlot& mine = process.region->slots[process.slot.load()];
  block.owner.store(static_cast<std::uint32_t>(process.slot.load()) + 1);
  block.sibling.store(mine.blocks.load());
  mine.blocks.store(number + 1);
}

// Blocks of processes that are gone, from slots that nobody has taken over. Who is killed in here
// leaves blocks that nobody finds again; what they have counted is still summed.
void adopt_blocks() {
  if (!file_is_ours()) return;
  const int mine = process.slot.load();
  for (std::size_t number = 0; number < kGpuSlots && process.idle == 0; ++number) {
    GpuSlot& other = process.region->slots[number];
    if (static_cast<int>(number) == mine || other.blocks.load() == 0 ||
        !lock_byte(number, F_WRLCK)) {
      continue;
    }
    if (!is_alive(other)) {
      std::uint32_t at = other.blocks.exchange(0);
      for (std::size_t i = 0; i < kGpuBlocks && at != 0 && at <= kGpuBlocks; ++i) {
        GpuBlock& block = process.region->blocks[at - 1];
        const std::uint32_t following = block.sibling.load();
        own(at - 1);
        block.next.store(process.idle);
        process.idle = at;
        at = following;
      }
    }
    lock_byte(number, F_UNLCK);
  }
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

// A thread has ended: the next one goes on counting where it stopped.
void return_block(void* ended) {
  assay_gpu_block = nullptr;
  auto* block = static_cast<GpuBlock*>(ended);
  if (!process.lock.try_lock_for_a_while()) return;
  block->next.store(process.idle, std::memory_order_relaxed);
  process.idle = static_cast<std::uint32_t>(block - process.region->blocks) + 1;
  process.full = false;
  process.lock.unlock();
}

GpuRegion* attach() {
  read_environment();
  if (region_path[0] == 0) return nullptr;
  const int opened = open(region_path, O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (opened < 0) return nullptr;
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
      pthread_atfork(nullptr, nullptr, forget_in_child) != 0) {
    munmap(memory, sizeof(GpuRegion));
    close(file);
    return nullptr;
  }
  process.file = file;
  process.device = status.st_dev;
  process.inode = status.st_ino;
  process.has_key = pthread_key_create(&process.key, return_block) == 0;
  return found;
}

}  // namespace

void tell(const char* what) {
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
    tell(process.region != nullptr ? "counting" : "no region: nothing is counted");
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
    if (process.lock.try_lock_for_a_while()) {
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

extern "C" int assay_gpu_enter() {
  if (!assay::gpu::driver_ready()) return 0;
  assay::gpu::block();
  return 1;
}
