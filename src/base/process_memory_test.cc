#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::base {
namespace {

TEST(ProcessMemoryTest, ReadsTheKernelsWords) {
  const MemorySize size = parse_memory_size(
      "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\nRssAnon:\t");
  EXPECT_EQ(size.resident_bytes, 10 * 1024);
  EXPECT_EQ(size.peak_bytes, 20 * 1024);
  for (const char* other : {"", "\nVmRSS:", "\nVmRSS: many kB"}) {
    EXPECT_EQ(parse_memory_size(other).resident_bytes, 0) << other;
  }
}

TEST(ProcessMemoryTest, SeesWhatIsTouched) {
  const ProcessMemory memory;
  const MemorySize before = memory.now();
  ASSERT_GT(before.resident_bytes, 0);
  const std::vector<char> touched(std::size_t{64} << 20U, 'x');
  const MemorySize after = memory.now();
  EXPECT_GT(after.resident_bytes, before.resident_bytes + (std::int64_t{32} << 20U));
  EXPECT_GE(after.peak_bytes, after.resident_bytes);
}

}  // namespace
}  // namespace assay::base
