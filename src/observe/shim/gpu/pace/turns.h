// This process and the file of turns (wire/gpu_turns.h): finding it, who lives, sleeping and
// waking.
#pragma once

#include <cstdint>

#include "observe/wire/gpu_turns.h"

namespace assay::gpu {

// The file, or memory of this process alone where there is none to be had: a cap still holds then,
// within the process. Null if there is not even that.
wire::GpuTurns* turns();

// This process's place in its run's row.
wire::TurnProcess& own_place(wire::TurnRun& run);
bool is_process_alive(const wire::TurnProcess& process);

std::uint64_t now_ns();
// Until more turns have ended than were seen, or so long at most. Never a cancellation point.
void sleep_for(wire::TurnDevice& device, std::uint32_t seen, std::uint64_t ns);
// A few microseconds, on the processor.
void spin_for_a_moment();
void wake_waiters(wire::TurnDevice& device);

}  // namespace assay::gpu
