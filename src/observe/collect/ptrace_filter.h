// The seccomp filter of the ptrace collector: path-class calls stop for the tracer, everything else
// runs at full speed. A process under this filter cannot do without its tracer: the kernel answers
// the stopped calls with ENOSYS when there is none.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace assay::collect {

// What the stop's event message says: which calls it is about.
enum class TraceReason : unsigned short {
  kPath = 1,   // of stopped_calls()
  kClone = 2,  // clone and clone3 that may ask not to be traced
};

std::vector<sock_filter> trace_filter();

// In the process that is to be filtered; it and all that come from it are from then on. System
// calls only. False with errno set when the kernel refuses.
bool install_trace_filter(const std::vector<sock_filter>& filter);

}  // namespace assay::collect
