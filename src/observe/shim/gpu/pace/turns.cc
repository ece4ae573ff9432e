#include "observe/shim/gpu/pace/turns.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {
namespace {

constexpr std::size_t kPathSize = 4096;
char turns_path[kPathSize];
constinit SpinLock attaching;
constinit std::atomic<GpuTurns*> attached{nullptr};

// The environment at process start: programs change theirs.
__attribute__((constructor)) void remember_turns_path() {
  const char* named = getenv(kGpuTurnsVariable);
  if (named != nullptr && named[0] != 0 && strlen(named) < kPathSize) {
    memcpy(turns_path, named, strlen(named) + 1);
  } else {
    // Programs of different versions must not share one.
    snprintf(turns_path, sizeof turns_path, "/dev/shm/assay-gpu-turns-%u-%u", geteuid(),
             static_cast<unsigned>(kTurnsVersion));
  }
}

// Only a file owned by this user: contents written by others cannot be trusted.
GpuTurns* map_file() {
  const int file = open(turns_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
  if (file < 0) return nullptr;
  struct stat status {};
  void* memory = MAP_FAILED;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      make_gpu_turns(file)) {
    memory = mmap(nullptr, sizeof(GpuTurns), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<GpuTurns*>(memory);
}

GpuTurns* own_memory() {
  void* memory =
      mmap(nullptr, sizeof(GpuTurns), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<GpuTurns*>(memory);
}

// The pid and the low half of its start time; 0: no such process, or a zombie.
std::uint64_t process_word(int pid) {
  const std::uint64_t start = start_ticks_of(pid);
  if (start == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(pid)) << 32U |
         static_cast<std::uint32_t>(start);
}

}  // namespace

void forget_turns() {
  attaching.reset();
}

GpuTurns* turns() {
  if (GpuTurns* known = attached.load(std::memory_order_acquire); known != nullptr) {
    return known;
  }
  if (!attaching.try_lock_bounded()) return nullptr;
  GpuTurns* made = attached.load();
  if (made == nullptr) {
    made = map_file();
    if (made == nullptr) {
      log_line(
          "no file for turns: this process keeps to its share without coordinating with others");
      made = own_memory();
    }
    attached.store(made, std::memory_order_release);
  }
  attaching.unlock();
  return made;
}

TurnProcess& own_place(TurnRun& run) {
  return join_run(run, process_word(getpid()), pid_namespace(), is_process_alive);
}

// Processes of another pid namespace cannot be checked; what they claim expires (kTurnPromiseNs).
bool is_process_alive(const TurnProcess& process) {
  const std::uint64_t word = process.process.load();
  if (word == 0 || process.namespace_id.load() != pid_namespace()) return false;
  return process_word(static_cast<int>(word >> 32U)) == word;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_for(TurnDevice& device, std::uint32_t seen, std::uint64_t ns) {
  constexpr std::uint64_t kLongestNs = 5'000'000;
  const timespec time{0, static_cast<long>(ns < kLongestNs ? ns : kLongestNs)};
  syscall(SYS_futex, &device.ended, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void spin_briefly() {
  for (int i = 0; i < 64; ++i) __builtin_ia32_pause();
}

void wake_waiters(TurnDevice& device) {
  syscall(SYS_futex, &device.ended, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace assay::gpu
