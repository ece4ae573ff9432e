// Fixture of the tests of memory limits: a run, its limit, and its use.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu::testing {

inline constexpr int kOutOfMemory = 2;

class GpuLimitsTest : public ::testing::Test {
 protected:
  void limit(std::uint64_t bytes) { run_.region().header.limits.bytes = bytes; }
  // Bytes that the run holds on a device; checks that its processes' sum is the same.
  std::uint64_t used(std::size_t device_index = 0) {
    std::uint64_t sum = 0;
    for (const wire::GpuSlot& slot : run_.region().slots) sum += slot.used[device_index].load();
    EXPECT_EQ(run_.region().devices[device_index].used.load(), sum);
    return sum;
  }
  [[nodiscard]] ProgramOutput memory(const std::string& actions,
                                     const std::string& settings = "") const {
    return run_.probe("memory " + actions, settings);
  }
  [[nodiscard]] std::string again(const std::string& actions) const {
    return "OTHER='" ASSAY_GPU_PROBE " memory " + actions + "'";
  }
  // Runs actions of which one is shell:OTHER: it changes the limit of the running run.
  [[nodiscard]] ProgramOutput memory_with_new_limit(const std::string& actions,
                                                    std::uint64_t bytes) const {
    const std::string file = std::string(run_.path()) + ".new";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    constexpr std::size_t kAt = offsetof(wire::GpuHeader, limits);
    ProgramOutput ran =
        memory(actions, "OTHER='dd if=" + file + " of=" + run_.path() +
                            " bs=1 conv=notrunc seek=" + std::to_string(kAt) + " 2>/dev/null'");
    ::unlink(file.c_str());
    return ran;
  }
  GpuTestRun run_;
};

}  // namespace assay::gpu::testing
