// The kernel's times as we keep them.
#pragma once

#include <time.h>

#include <cstdint>

namespace assay::base {

constexpr std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace assay::base
