#include "base/prometheus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay::base {
namespace {

TEST(MetricFamilyTest, WritesHelpAndTypeOnceBeforeItsSamples) {
  MetricFamily family("assay_x_total", MetricType::kCounter, "Things.");
  EXPECT_EQ(family.text(), "");
  family.add({}, std::uint64_t{18446744073709551615U});
  family.add({{"run", "7"}, {"uid", "ab"}}, 0.5);
  EXPECT_EQ(family.text(),
            "# HELP assay_x_total Things.\n# TYPE assay_x_total counter\n"
            "assay_x_total 18446744073709551615\nassay_x_total{run=\"7\",uid=\"ab\"} 0.5\n");
}

TEST(MetricFamilyTest, EscapesAnyText) {
  MetricFamily family("x", MetricType::kGauge, "a \"quoted\"\nback\\slash");
  family.add({{"l", "a\"b\\c\nd\xff é"}}, 1.0);
  EXPECT_EQ(family.text(),
            "# HELP x a \"quoted\"\\nback\\\\slash\n# TYPE x gauge\n"
            "x{l=\"a\\\"b\\\\c\\nd\\\\xff é\"} 1\n");
}

TEST(MetricFamilyTest, WritesValuesThatAreNotFinite) {
  MetricFamily family("x", MetricType::kGauge, "h");
  family.add({}, std::nan(""));
  family.add({}, std::numeric_limits<double>::infinity());
  family.add({}, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(family.text().ends_with("x NaN\nx +Inf\nx -Inf\n"));
}

TEST(MetricNameTest, ReplacesWhatANameCannotHave) {
  EXPECT_EQ(metric_name_part("tokens per s/é"), "tokens_per_s___");
}

}  // namespace
}  // namespace assay::base
