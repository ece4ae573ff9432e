// This process's access to the file of turns (turn_file.h): finding it, liveness of processes,
// sleeping and waking.
#pragma once

#include <cstdint>

#include "observe/shim/gpu/pace/turn_rules.h"

namespace assay::gpu {

// The mapped file, or private memory if there is none: then a cap still holds within the process.
// Null if both fail.
GpuTurns* turns();

// This process's entry in its run's row.
TurnProcess& own_place(TurnRun& run);
bool is_process_alive(const TurnProcess& process);

// In the child of a fork.
void forget_turns();

std::uint64_t now_ns();
// Sleeps until more turns than `seen` have ended, or for `ns` at most. Not a cancellation point.
void sleep_for(TurnDevice& device, std::uint32_t seen, std::uint64_t ns);
// Busy-waits a few microseconds.
void spin_briefly();
void wake_waiters(TurnDevice& device);

}  // namespace assay::gpu
