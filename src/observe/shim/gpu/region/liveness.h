// Whether a process lives, by what the kernel tells of it: its number and when it began.
#pragma once

#include <cstdint>

namespace assay::gpu {

// Field 22 of /proc/PID/stat; 0: there is no such process, or nothing of it but its exit status.
std::uint64_t start_ticks_of(int pid);
// Of this process: numbers mean something within one only. 0: not known.
std::uint64_t pid_namespace();

}  // namespace assay::gpu
