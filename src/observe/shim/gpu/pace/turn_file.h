// The file of turns: which of a machine's limited runs may use a GPU at the moment. One file per
// user in shared memory, mapped by every process of a run that has a share or a priority; runs
// without either are not in it. The rules by which it changes are in turn_rules.h.
//
//   GpuTurns: TurnDevice × 16, each with a word for the holder and TurnRun × 64
//
// Nothing in it is ever locked: the holder and the end of its turn are one word, changed by
// compare-and-swap, and each process records until when its work will be on the device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/wire/gpu_region.h"

namespace assay::gpu {

inline constexpr std::uint64_t kTurnsMagic = 0x314E525554594153;  // "SAYTURN1"
inline constexpr std::uint64_t kTurnsVersion = 2;
// Environment: the file, instead of /dev/shm/assay-gpu-turns-UID-VERSION.
inline constexpr const char* kGpuTurnsVariable = "ASSAY_GPU_TURNS";

// A row whose run has not been seen for this long may be taken by another.
inline constexpr std::uint64_t kTurnForgottenNs = 10'000'000'000;

// A time this far ahead cannot be valid and is ignored.
constexpr bool is_absurd(std::uint64_t time, std::uint64_t now) {
  constexpr std::uint64_t kAbsurdNs = 2'000'000'000;
  return time > now + kAbsurdNs;
}

inline constexpr std::size_t kTurnProcesses = 7;
inline constexpr std::size_t kTurnRuns = 64;
inline constexpr std::size_t kNoTurnRow = kTurnRuns;

struct TurnProcess {
  std::atomic<std::uint64_t> process;       // pid, and the low half of its start time; 0: free
  std::atomic<std::uint64_t> namespace_id;  // of pids
  std::atomic<std::uint64_t> until_ns;      // estimated end of its work on the device
  std::uint64_t reserved;
};

struct alignas(64) TurnRun {
  std::atomic<std::uint64_t> run;         // GpuHeader::run; 0: free
  std::atomic<std::uint64_t> seen_ns;     // when a process of it last asked
  std::atomic<std::uint64_t> waiting_ns;  // when it was last refused a turn; 0: not waiting
  std::atomic<std::uint64_t> since_ns;    // since when it waits
  std::atomic<std::uint32_t> share;       // thousandths
  std::atomic<std::uint32_t> priority;    // wire::GpuPriority
  std::atomic<std::uint32_t> borrow;
  std::uint32_t reserved_word;
  std::atomic<std::int64_t> credit_ns;    // below zero: a debt
  std::atomic<std::uint64_t> filled_ns;   // when credit was last filled up
  std::atomic<std::uint64_t> busy_ns;     // device time used so far
  std::atomic<std::uint64_t> paid_ns;     // time it held turns divided by its share; least is next
  std::atomic<std::uint64_t> charged_ns;  // charged up to here
  std::atomic<std::uint64_t> held_ns;     // its turn is paid for up to here
  std::uint64_t reserved[4];
  TurnProcess processes[kTurnProcesses];
  std::uint64_t reserved_end[4];
};
static_assert(sizeof(TurnRun) == 384);

struct alignas(64) TurnDevice {
  std::atomic<std::uint64_t> key;  // device_key(uuid); 0: free
  // Upper 56 bits: the end of the turn in microseconds, or when the last one ended. Lower 8 bits:
  // the holder's row plus 1; 0: none.
  std::atomic<std::uint64_t> holder;
  std::atomic<std::uint64_t> paid_ns;  // of the last run that took a turn; new runs begin with it
  std::atomic<std::uint32_t> ended;    // counts turns that ended; a futex
  // A process is searching for a row. Others wait for it, but only briefly, since it may have been
  // killed. Otherwise processes of one run that start together could get a row, and so a share,
  // each.
  std::atomic<std::uint32_t> joining;
  std::uint64_t reserved[4];
  TurnRun runs[kTurnRuns];
};

struct GpuTurns {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> version;
  std::uint64_t reserved[6];
  TurnDevice devices[wire::kGpuDevices];
};

// The row of the holder in that word; kNoTurnRow: no run has the turn.
constexpr std::size_t turn_holder(std::uint64_t word) {
  const std::size_t row = word & 0xFF;
  return row == 0 || row > kTurnRuns ? kNoTurnRow : row - 1;
}

// Allocates the file's space and writes its header, unless another process has. System calls only;
// false, with errno, on failure or if the file has another version.
bool make_gpu_turns(int file);
inline bool is_valid(const GpuTurns& turns) {
  return turns.magic.load() == kTurnsMagic && turns.version.load() == kTurnsVersion;
}

// The device with this key, claimed if it is new; null if all are taken.
TurnDevice* turn_device(GpuTurns& turns, std::uint64_t key);
// The run's row, claimed if it is new, from an exited run if there is no other; kNoTurnRow if there
// is none.
std::size_t join_turns(TurnDevice& device, std::uint64_t run, std::uint64_t now);
// A process's place in the row, from an exited process if there is no other. The last is shared
// when there is none left.
TurnProcess& join_run(TurnRun& run, std::uint64_t process, std::uint64_t namespace_id,
                      bool (*is_alive)(const TurnProcess&));

}  // namespace assay::gpu
