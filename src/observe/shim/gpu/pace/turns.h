// This process's access to the file of turns (wire/gpu_turns.h): finding it, liveness of processes,
// sleeping and waking.
#pragma once

#include <cstdint>

#include "observe/wire/gpu_turns.h"

namespace assay::gpu {

// The mapped file, or private memory if there is none: then a cap still holds within the process.
// Null if both fail.
wire::GpuTurns* turns();

// This process's entry in its run's row.
wire::TurnProcess& own_place(wire::TurnRun& run);
bool is_process_alive(const wire::TurnProcess& process);

std::uint64_t now_ns();
// Sleeps until more turns than `seen` have ended, or for `ns` at most. Not a cancellation point.
void sleep_for(wire::TurnDevice& device, std::uint32_t seen, std::uint64_t ns);
// Busy-waits a few microseconds.
void spin_for_a_moment();
void wake_waiters(wire::TurnDevice& device);

}  // namespace assay::gpu
