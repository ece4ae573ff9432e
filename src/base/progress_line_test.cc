// Exact lines at exact widths, and the smoothing of the rate.
#include "base/progress_line.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace assay::base {
namespace {

constexpr std::int64_t kDone = std::int64_t{1} << 30;

ProgressFacts hashing() {
  return {.label = "hashing",
          .done = kDone,
          .total = 4 * kDone,
          .unit = ProgressUnit::kBytes,
          .per_second = 512e6,
          .elapsed = Seconds(2)};
}

TEST(ProgressLine, ShowsHowFarHowFastAndHowLong) {
  EXPECT_EQ(progress_line(hashing(), 80), "hashing  1.00 GiB / 4.00 GiB   25%  512 MB/s  ETA 0:06");
}

TEST(ProgressLine, DropsPartsUntilItFits) {
  const auto at = [](std::size_t columns) { return progress_line(hashing(), columns); };
  EXPECT_EQ(at(54), "hashing  1.00 GiB / 4.00 GiB   25%  512 MB/s  ETA 0:06");
  EXPECT_EQ(at(53), "hashing  1.00 GiB / 4.00 GiB   25%  ETA 0:06");
  EXPECT_EQ(at(43), "hashing   25%  ETA 0:06");
  EXPECT_EQ(at(22), "hashing   25%");
  EXPECT_EQ(at(12), "25%");
  EXPECT_EQ(at(2), "");
  EXPECT_EQ(at(0), "");
}

TEST(ProgressLine, UnknownTotalShowsTheTimeSoFar) {
  const ProgressFacts facts{
      .label = "scanning", .done = 12'345, .per_second = 1234.4, .elapsed = Seconds(75)};
  EXPECT_EQ(progress_line(facts, 80), "scanning  12,345  1,234/s  1:15");
  EXPECT_EQ(progress_line(facts, 16), "scanning  12,345");
  EXPECT_EQ(progress_line(facts, 10), "12,345");
}

TEST(ProgressLine, HundredPercentMeansDone) {
  ProgressFacts facts{.label = "x", .done = 999'999, .total = 1'000'000};
  EXPECT_EQ(progress_line(facts, 80), "x  999,999 / 1,000,000   99%");
  facts.done = 1'000'000;
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,000 / 1,000,000  100%");
  facts.done = 1'000'001;  // the file grew while it was read
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,001 / 1,000,000  100%");
  facts.per_second = 10;
  EXPECT_EQ(progress_line(facts, 80), "x  1,000,001 / 1,000,000  100%  10/s  ETA 0:00");
  facts = {.label = "x", .done = 0, .total = 0};
  EXPECT_EQ(progress_line(facts, 80), "x  0 / 0  100%");
}

TEST(ProgressLine, LongTimesReadAsClockOrDays) {
  const auto eta = [](std::int64_t seconds) {
    return progress_line({.label = "x", .done = 0, .total = seconds, .per_second = 1}, 80);
  };
  EXPECT_EQ(eta(3723), "x  0 / 3,723    0%  1/s  ETA 1:02:03");
  EXPECT_EQ(eta(864'000), "x  0 / 864,000    0%  1/s  ETA 10.0 d");
  EXPECT_EQ(eta(400LL * 86'400), "x  0 / 34,560,000    0%  1/s");  // no more than a guess
}

TEST(ProgressLine, ShortensTheLabelAndShowsItsControlCharacters) {
  const ProgressFacts facts{.label = "日本語の長いファイル名", .done = 1, .total = 2};
  EXPECT_EQ(progress_line(facts, 30), "日本語の…  1 / 2   50%");
  EXPECT_EQ(progress_line({.label = "a\x1b[2J", .done = 1, .total = 2}, 80),
            "a\\x1b[2J  1 / 2   50%");
}

RC_GTEST_PROP(ProgressLine, IsNeverTooWide,
              (const std::string& label, std::int64_t done, std::int64_t total, double rate)) {
  const auto columns = *rc::gen::inRange<std::size_t>(0, 120);
  const auto unit = *rc::gen::element(ProgressUnit::kItems, ProgressUnit::kBytes);
  ProgressFacts facts{.label = label, .done = done, .unit = unit, .per_second = rate};
  if (*rc::gen::arbitrary<bool>()) facts.total = std::max<std::int64_t>(total, 0);
  const std::string line = progress_line(facts, columns);
  RC_ASSERT(display_width(line) <= columns);
  RC_ASSERT(printable(line) == line);
}

TEST(SmoothedRate, IsRightFromTheFirstSample) {
  SmoothedRate rate;
  EXPECT_EQ(rate.per_second(), 0);
  rate.sample(50, 0.1);
  EXPECT_NEAR(rate.per_second(), 500, 1e-9);
  rate.sample(5, 0);  // no time has passed: nothing is learnt
  EXPECT_NEAR(rate.per_second(), 500, 1e-9);
}

TEST(SmoothedRate, FollowsALastingChangeButNotAHiccup) {
  SmoothedRate rate;
  for (int i = 0; i < 200; ++i) rate.sample(10, 0.1);
  rate.sample(0, 0.1);
  EXPECT_GT(rate.per_second(), 95);
  EXPECT_LT(rate.per_second(), 100);
  for (int i = 0; i < 300; ++i) rate.sample(20, 0.1);
  EXPECT_NEAR(rate.per_second(), 200, 1);
}

RC_GTEST_PROP(SmoothedRate, OfASteadyTaskIsItsRateHoweverSampled, ()) {
  const double per_second = *rc::gen::inRange(1, 1'000'000);
  SmoothedRate rate;
  for (const int ms :
       *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 20'000)))) {
    rate.sample(per_second * ms / 1000, ms / 1000.0);
    RC_ASSERT(std::abs(rate.per_second() - per_second) < 1e-6 * per_second);
  }
}

}  // namespace
}  // namespace assay::base
