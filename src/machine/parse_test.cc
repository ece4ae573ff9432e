// The text formats of /proc and /sys, including malformed input.
#include "machine/parse.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::machine {
namespace {

TEST(Parse, CpuLists) {
  EXPECT_EQ(parse_cpu_list("0"), (std::vector<int>{0}));
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>());
  for (const char* wrong :
       {"x", "1-", "-1", "3-1", "0-3,2", "0,,1", "0-99999999", "1 2", "0-3:2"}) {
    EXPECT_EQ(parse_cpu_list(wrong), std::nullopt) << wrong;
  }
}

RC_GTEST_PROP(Parse, CpuListsSurviveTheRoundTrip, (std::set<std::uint16_t> ids)) {
  const std::vector<int> cpus(ids.begin(), ids.end());
  RC_ASSERT(parse_cpu_list(format_cpu_list(cpus)) == cpus);
}

TEST(Parse, Fields) {
  const std::string_view text = "MemTotalX: 1 kB\nMemTotal:    24 kB\nmodel name\t: A: b\nBad: 7\n";
  EXPECT_EQ(kib_field(text, "MemTotal"), base::Bytes(24 * 1024));
  EXPECT_EQ(field(text, "model name"), "A: b");
  EXPECT_EQ(field(text, "model"), std::nullopt);
  EXPECT_EQ(kib_field(text, "Bad"), std::nullopt);
  EXPECT_EQ(kib_field("MemTotal: 9223372036854775807 kB", "MemTotal"), std::nullopt);
  EXPECT_EQ(kib_field("MemTotal: -5 kB", "MemTotal"), std::nullopt);
}

TEST(Parse, LinkSpeeds) {
  EXPECT_EQ(parse_pcie_generation("2.5 GT/s PCIe"), 1);
  EXPECT_EQ(parse_pcie_generation("8 GT/s"), 3);  // before Linux 5.x
  EXPECT_EQ(parse_pcie_generation("32.0 GT/s PCIe"), 5);
  EXPECT_EQ(parse_pcie_generation("64.0 GT/s PCIe"), 6);
  EXPECT_EQ(parse_pcie_generation("Unknown"), std::nullopt);
  EXPECT_EQ(parse_infiniband_rate("400 Gb/sec (4X NDR)"), base::BytesPerSecond(50e9));
  EXPECT_EQ(parse_infiniband_rate("2.5 Gb/sec (1X SDR)"), base::BytesPerSecond(2.5e9 / 8));
  for (const char* wrong : {"", "400", "-1 Gb/sec", "nan Gb/sec", "1e300 Gb/sec", " Gb/sec"}) {
    EXPECT_EQ(parse_infiniband_rate(wrong), std::nullopt) << wrong;
  }
}

RC_GTEST_PROP(Parse, TakesAnything, (const std::string& text)) {
  (void)parse_int(text);
  (void)parse_hex(text);
  (void)parse_double(text);
  (void)parse_cpu_list(text);
  (void)kib_field(text + " kB", "");
  (void)parse_pcie_generation(text + " GT/s");
  (void)parse_infiniband_rate(text + " Gb/sec");
  RC_ASSERT(!split(text, ',').empty());
}

}  // namespace
}  // namespace assay::machine
