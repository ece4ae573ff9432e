// Fixture of the tests of memory limits: a run, its limit, and its use.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu::testing {

inline constexpr int kOutOfMemory = 2;

class GpuLimitsTest : public ::testing::Test {
 protected:
  void limit(std::uint64_t bytes) { run_.region().header.limits.bytes = bytes; }
  // Bytes that the run holds on a device; checks that its processes' sum is the same.
  std::uint64_t used(std::size_t line = 0) {
    std::uint64_t sum = 0;
    for (const wire::GpuSlot& slot : run_.region().slots) sum += slot.used[line].load();
    EXPECT_EQ(run_.region().devices[line].used.load(), sum);
    return sum;
  }
  [[nodiscard]] ProgramOutput memory(const std::string& actions,
                                     const std::string& settings = "") const {
    return run_.probe("memory " + actions, settings);
  }
  [[nodiscard]] std::string again(const std::string& actions) const {
    return "OTHER='" ASSAY_GPU_PROBE " memory " + actions + "'";
  }
  GpuTestRun run_;
};

}  // namespace assay::gpu::testing
