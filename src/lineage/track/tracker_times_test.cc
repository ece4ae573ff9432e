// Files whose times do not show whether they were changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using collect::Change;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::report_lines;
using testing::TrackerScenario;
using wire::RecordOp;

class TrackerTimesTest : public testing::TrackerFixture {
 protected:
  void SetUp() override {
    TrackerFixture::SetUp();
    scenario.put("a", "one");
    scenario.begin();
  }
  // Sets times as touch -d does.
  static void set_times(const TrackerScenario& where, const std::string& name) {
    const std::array<timespec, 2> times = {timespec{1'000'000'000, 0}, timespec{1'000'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, where.path(name).c_str(), times.data(), 0), 0);
  }
  void set_times_by_the_run(const std::string& name) {
    scenario.tracker->before_change(scenario.path(name), scenario.stamp(name), Change::kTimes);
    set_times(scenario, name);
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, TrackerTimesTest, testing::all_modes());

TEST_P(TrackerTimesTest, SetByTheRunAfterItRead) {
  scenario.read("a");
  set_times_by_the_run("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTimesTest, SetByTheRunAndThenWritten) {
  scenario.read("a");
  set_times_by_the_run("a");
  scenario.overwrite("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTimesTest, SetByTheRunAndThenChangedByOthers) {
  scenario.read("a");
  set_times_by_the_run("a");
  scenario.write_outside("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "missed changed"));
  EXPECT_THAT(scenario.finish().missing[0].text, HasSubstr("by another program"));
}

TEST_P(TrackerTimesTest, SetByTheRunWithoutReading) {
  set_times_by_the_run("a");
  EXPECT_THAT(end(), ElementsAre());
}

TEST_P(TrackerTimesTest, SetBeforeItCouldBeHashed) {
  const auto before = scenario.stamp("a");
  set_times(scenario, "a");  // by an unobserved process
  scenario.report(RecordOp::kRead, "a", &before);
  EXPECT_THAT(end(), ElementsAre("in a = -", "missed changed"));
  EXPECT_THAT(scenario.finish().missing[0].text,
              EndsWith("/a: its times changed during the run; its content may have changed"));
}

TEST_P(TrackerTimesTest, ProcessesDoNotWaitForTheLargestFiles) {
  TrackerScenario small({.pre_image_limit = 2});
  small.put("a", "one");
  small.begin();
  small.read("a");
  small.tracker->before_change(small.path("a"), small.stamp("a"), Change::kTimes);
  EXPECT_THAT(report_lines(small.finish(), {"one"}), ElementsAre("in a = one")) << "there was time";
}

TEST_P(TrackerTimesTest, OpenedForWritingRightAfterItWasMade) {
  scenario.put("b", "one");
  scenario.put("c", "one");
  scenario.open_only("b");
  scenario.open_only("c", true);
  EXPECT_THAT(end(), ElementsAre("in c = one"));
  EXPECT_EQ(scenario.finish().reasons.at("b"), "unchanged");
  EXPECT_EQ(scenario.finish().reasons.at("c"), "unchanged");
}

}  // namespace
}  // namespace assay::lineage
