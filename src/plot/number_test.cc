#include "plot/number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::plot {
namespace {

using ::testing::ElementsAre;

TEST(ShortNumber, IsWhatPeopleWrite) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(12'000), "12k");
  EXPECT_EQ(short_number(1.5e6), "1.5M");
  EXPECT_EQ(short_number(-2.5), "-2.5");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(0.001), "0.001");
  EXPECT_EQ(short_number(0.0001), "1e-4");
  EXPECT_EQ(short_number(8.03e9), "8.03B");
  EXPECT_EQ(short_number(15e12), "15T");
  EXPECT_EQ(short_number(1e15), "1e15");
  EXPECT_EQ(short_number(1.25e290), "1.25e290");
}

TEST(ShortNumber, RoundingMayReachTheNextUnit) {
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1k");
  EXPECT_EQ(short_number(999'950), "1M");
  EXPECT_EQ(short_number(1234, 2), "1.2k");
}

TEST(TickLabels, AreAsShortAsTellsThemApart) {
  EXPECT_THAT(tick_labels(std::vector<double>{0, 500, 1000, 1500}),
              ElementsAre("0", "500", "1k", "1.5k"));
  EXPECT_THAT(tick_labels(std::vector<double>{1000.2, 1000.4, 1000.6}),
              ElementsAre("1.0002k", "1.0004k", "1.0006k"));
}

TEST(TickLabels, PowersOfTwoAreWrittenOut) {
  EXPECT_THAT(tick_labels(std::vector<double>{512, 1024, 2048, 16384}),
              ElementsAre("512", "1,024", "2,048", "16,384"));
  EXPECT_THAT(tick_labels(std::vector<double>{std::ldexp(1, 30), std::ldexp(1, 31)}),
              ElementsAre("1.07B", "2.15B"));
}

}  // namespace
}  // namespace assay::plot
