// What tests of memory limits share: a run, its limit, and what it has.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu::testing {

inline constexpr int kOutOfMemory = 2;

class GpuLimitsTest : public ::testing::Test {
 protected:
  void limit(std::uint64_t bytes) { run_.region().header.limits.bytes = bytes; }
  // What the run has of its first device, which must be what its processes have of it.
  std::uint64_t used(std::size_t line = 0) {
    std::uint64_t sum = 0;
    for (const wire::GpuSlot& slot : run_.region().slots) sum += slot.used[line].load();
    EXPECT_EQ(run_.region().devices[line].used.load(), sum);
    return sum;
  }
  [[nodiscard]] Ran memory(const std::string& words, const std::string& settings = "") const {
    return run_.probe("memory " + words, settings);
  }
  [[nodiscard]] std::string again(const std::string& words) const {
    return "OTHER='" ASSAY_GPU_PROBE " memory " + words + "'";
  }
  RunRecord run_;
};

}  // namespace assay::gpu::testing
