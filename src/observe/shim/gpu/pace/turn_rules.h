// The rules of turns: which run is next, for how long it has the device, what it is charged.
//
// A run has a bucket of credit that fills at its share of the time and is charged for the time in
// which its work was on the device. A run that waits and has credit may take a turn: by priority,
// then by which has held the device least for its share. The holder of a turn checks at every
// pacing point whether it may continue. A turn whose holder has no work on the device, because it
// is idle, stopped or has exited, may be taken by any run.
//
// All functions are given the time (CLOCK_MONOTONIC, nanoseconds) and never wait.
#pragma once

#include "observe/shim/gpu/pace/turn_file.h"

namespace assay::gpu {

// A round of all runs. Shorter ones are more exact over a window, longer ones lose less between
// turns; in a window of a second there are 40.
inline constexpr std::uint64_t kTurnPeriodNs = 25'000'000;
// A holder without work on the device for this long loses its turn: kTurnIdleNs to a run of the
// same priority, kTurnIdleHighNs to one of a lower priority. In the first time it may be between
// two kernels, in the second between two steps.
inline constexpr std::uint64_t kTurnIdleNs = 300'000;
inline constexpr std::uint64_t kTurnIdleHighNs = 2'000'000;
// A run that has not asked for this long is no longer waiting.
inline constexpr std::uint64_t kTurnFreshNs = 10'000'000;
// A run that has waited this long with credit comes first, whatever its priority: none starves.
inline constexpr std::uint64_t kTurnStarvingNs = 500'000'000;
// Each waiting run, in order, has this long to take a free turn; it may have been killed.
inline constexpr std::uint64_t kTurnHandOverNs = 500'000;
// If a process claims to have work on the device for longer, that counts only while it is alive.
inline constexpr std::uint64_t kTurnPromiseNs = 40'000'000;
inline constexpr std::uint64_t kTurnShortestNs = 500'000;

// The run's part of a period.
inline std::uint64_t turn_part(const TurnRun& run) {
  const std::uint64_t part =
      kTurnPeriodNs * run.share.load(std::memory_order_relaxed) / wire::kGpuWholeShare;
  return part > kTurnShortestNs ? part : kTurnShortestNs;
}

void set_share(TurnRun& run, const wire::GpuShare& share);

// Whether the run has the turn, taken if it was free; if not, when to ask again.
struct Turn {
  bool mine;
  std::uint64_t again_ns;
};
Turn take_turn(TurnDevice& device, std::size_t row, std::uint64_t now,
               bool (*is_alive)(const TurnProcess&));

// For the holder, which has `ahead_ns` of work on the device: may it launch more?
enum class TurnDecision : std::uint8_t {
  kGo,
  kStop,  // no; let the work run out, then end the turn
  kLost,  // the run no longer has the turn
};
TurnDecision may_go_on(TurnDevice& device, std::size_t row, std::uint64_t now,
                       std::uint64_t ahead_ns);
// True if the run held the turn: then waiting processes should be woken.
bool end_turn(TurnDevice& device, std::size_t row, std::uint64_t now);

// Charges the run for an interval in which its work was on the device. Time already charged is not
// charged again: several threads of a run may report the same time. Returns what was charged.
std::uint64_t charge_turn(TurnDevice& device, std::size_t row, std::uint64_t from,
                          std::uint64_t to);

}  // namespace assay::gpu
