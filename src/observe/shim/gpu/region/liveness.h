// Whether a process is alive, by its pid and start time in /proc.
#pragma once

#include <cstdint>

namespace assay::gpu {

// Field 22 of /proc/PID/stat; 0: no such process, or a zombie.
std::uint64_t start_ticks_of(int pid);
// The pid namespace of this process: pids are comparable only within one. 0: unknown.
std::uint64_t pid_namespace();

}  // namespace assay::gpu
