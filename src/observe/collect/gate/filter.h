// The gate's seccomp filter as classic BPF, generated from the table of calls (call/call_table.h).
//
// For a call that is not in the table the program reads only architecture and number. The kernel
// detects that when the filter is installed and lets such calls pass through a bitmap, without
// running the program: about ten nanoseconds.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "observe/wire/gate.h"

namespace assay::collect {

enum class GateMode {
  kEverything,  // all path-class calls, except from the shim's instruction
  kChanges,     // only calls that change existing files: eBPF reports the rest
};

// The filter as a program. `action` is what happens to a stopped call: SECCOMP_RET_USER_NOTIF here,
// SECCOMP_RET_TRACE for ptrace.
std::vector<sock_filter> gate_filter(GateMode mode, std::uint32_t action);

// The numbers that the filter with a listener tests for, for shims that must replace it.
wire::StoppedNumbers stopped_numbers(GateMode mode);

}  // namespace assay::collect
