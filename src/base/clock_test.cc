// UTC text against gmtime_r, and time that a test moves.
#include "base/clock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <time.h>

#include <limits>

#include "base/testing/fake_clock.h"

namespace assay::base {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(UtcText, KnownMoments) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1'794'707'894 * kSecond), "2026-11-15T01:58:14Z");
  EXPECT_EQ(utc_text(951'782'400 * kSecond), "2000-02-29T00:00:00Z");
}

TEST(UtcText, RoundsDownBefore1970Too) {
  EXPECT_EQ(utc_text(kSecond - 1), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(utc_text(-kSecond), "1969-12-31T23:59:59Z");
  EXPECT_EQ(utc_text(-kSecond - 1), "1969-12-31T23:59:58Z");
  EXPECT_EQ(utc_millis_text(1'250'999'999), "1970-01-01T00:00:01.250Z");
  EXPECT_EQ(utc_millis_text(-1), "1969-12-31T23:59:59.999Z");
}

TEST(UtcText, ReachesBothEndsOfItsRange) {
  EXPECT_EQ(utc_text(std::numeric_limits<std::int64_t>::min()), "1677-09-21T00:12:43Z");
  EXPECT_EQ(utc_text(std::numeric_limits<std::int64_t>::max()), "2262-04-11T23:47:16Z");
}

RC_GTEST_PROP(UtcText, AgreesWithGmtime, ()) {
  const auto seconds = *rc::gen::inRange<std::int64_t>(-9'223'372'036, 9'223'372'036);
  const auto rest = *rc::gen::inRange<std::int64_t>(0, kSecond);
  const time_t moment = seconds;
  tm parts{};
  RC_ASSERT(gmtime_r(&moment, &parts) != nullptr);
  char expected[64];
  RC_ASSERT(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0U);
  RC_ASSERT(utc_text(seconds * kSecond + rest) == expected);
}

TEST(SystemClock, IsTheMachinesClock) {
  const std::int64_t wall_s = system_clock().wall_ns() / kSecond;
  EXPECT_LE(std::abs(wall_s - static_cast<std::int64_t>(time(nullptr))), 1);
  const std::int64_t before = system_clock().monotonic_ns();
  EXPECT_LE(before, system_clock().monotonic_ns());
}

TEST(Stopwatch, MeasuresOnTheMonotonicClock) {
  FakeClock clock(1'000 * kSecond);
  clock.advance_ms(7);
  Stopwatch stopwatch(clock);
  clock.advance_ms(1500);
  clock.set_wall_ns(0);  // set back by an hour or by half a century: no matter
  EXPECT_EQ(stopwatch.elapsed_ns(), 1'500'000'000);
  EXPECT_EQ(stopwatch.elapsed(), Seconds(1.5));
  stopwatch.restart();
  EXPECT_EQ(stopwatch.elapsed_ns(), 0);
}

TEST(FakeClock, MovesBothClocks) {
  FakeClock clock(50);
  clock.advance_ns(3);
  EXPECT_EQ(clock.monotonic_ns(), 3);
  EXPECT_EQ(clock.wall_ns(), 53);
}

}  // namespace
}  // namespace assay::base
