// A call that the collector is to see, made so that being watched does not show.
#pragma once

#include <errno.h>

#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {

// Lets the collector see the call. Two answers are its absence's, not the call's own:
// - EINTR: a signal handler ran before the collector had taken the call up.
// - ENOSYS: nobody is left to ask. The program must go on all the same, and the log says that
//   something is missing.
inline long stopped_call(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result = 0;
  do {
    result = ordinary_call(number, a, b, c, d, e);
  } while (result == -EINTR && on());
  if (__builtin_expect(result == -ENOSYS, 0) && on()) {
    result = gate_call(number, a, b, c, d, e);
    if (!failed(result)) shim.header->dropped.fetch_add(1, std::memory_order_relaxed);
  }
  return result;
}

}  // namespace assay::shim
