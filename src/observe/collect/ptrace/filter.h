// The seccomp filter of the ptrace collector: the gate's, answered by stops instead of a listener,
// and with an eye on clone. A process under this filter cannot do without its tracer: the kernel
// answers the stopped calls with ENOSYS when there is none.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace assay::collect {

// What a stop says: which calls it is about.
enum class TraceReason : unsigned short {
  kPath = 1,   // of stopped_calls()
  kClone = 2,  // clone and clone3 that may ask not to be traced
};

constexpr int kClone3 = 435;  // the call's number on every architecture

std::vector<sock_filter> trace_filter();

}  // namespace assay::collect
