// The clock of events.
#pragma once

#include <time.h>

#include <cstdint>

namespace assay::collect {

inline std::int64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace assay::collect
