// The clock of events.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.h"

namespace assay::collect {

inline std::int64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return base::nanoseconds(time);
}

}  // namespace assay::collect
