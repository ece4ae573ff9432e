// The seccomp filter of the ptrace collector: the gate's, with ptrace stops instead of a listener,
// and with clone added. A process under this filter depends on its tracer: without one, the stopped
// calls fail with ENOSYS.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace assay::collect {

// Which calls a stop is about.
enum class TraceReason : unsigned short {
  kPath = 1,   // of calls_to_stop()
  kClone = 2,  // clone and clone3 that may request not to be traced
};

constexpr int kClone3 = 435;  // the call's number on every architecture

std::vector<sock_filter> trace_filter();

}  // namespace assay::collect
