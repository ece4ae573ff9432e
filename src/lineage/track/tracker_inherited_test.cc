// Files that the command inherits open: as standard streams, and as other descriptors, which may
// have leaked from its parent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::report_lines;
using testing::TrackerScenario;
using wire::RecordOp;
namespace fs = std::filesystem;
namespace flag = wire::flag;

class TrackerInheritedTest : public testing::TrackerFixture {
 protected:
  void inherit(TrackerScenario& in, int descriptor, RecordOp op, const std::string& name,
               std::uint16_t flags = 0) {
    auto event = in.event(op, in.path(name));
    event.source = wire::Source::kInherited;
    event.value = descriptor;
    event.flags = flags;
    event.stamp = in.stamp(name);
    in.tracker->on_event(event);
  }
  void inherit(int descriptor, RecordOp op, const std::string& name, std::uint16_t flags = 0) {
    inherit(scenario, descriptor, op, name, flags);
  }
  std::string left_out(const std::string& name) { return scenario.finish().reasons[name]; }
};
INSTANTIATE_TEST_SUITE_P(Modes, TrackerInheritedTest, testing::all_modes());

TEST_P(TrackerInheritedTest, StandardStreamsAreMeantForTheCommand) {
  scenario.put("in", "one");
  scenario.put("out", "");
  scenario.put("log", "one");
  scenario.put("both", "two");
  scenario.begin();
  inherit(0, RecordOp::kRead, "in");
  inherit(1, RecordOp::kWrite, "out");
  inherit(2, RecordOp::kWrite, "log");
  inherit(0, RecordOp::kRead, "both", flag::kWritable);
  testing::write_file(scenario.path("log"), "onetwo");
  EXPECT_THAT(end(), ElementsAre("in both = two", "in in = one", "out log: modified = onetwo",
                                 "out out: created = "));
}

// `2>> log` of a command that reported no error.
TEST_P(TrackerInheritedTest, AStandardStreamThatWasNotWrittenToIsNoOutput) {
  scenario.put("log", "one");
  scenario.put("racy", "two");
  scenario.begin();
  inherit(2, RecordOp::kWrite, "log");
  inherit(1, RecordOp::kWrite, "racy", flag::kRacy);
  EXPECT_THAT(end(), ElementsAre("out racy: modified = two"));
  EXPECT_EQ(left_out("log"), "unchanged");
}

TEST_P(TrackerInheritedTest, AnUnusedInheritedDescriptorIsNoOutput) {
  scenario.put("log", "one");
  scenario.put("empty", "");
  scenario.put("lock", "two");
  scenario.begin();
  inherit(3, RecordOp::kWrite, "log");
  inherit(4, RecordOp::kWrite, "empty");
  inherit(5, RecordOp::kRead, "lock", flag::kWritable);
  EXPECT_THAT(end(), ElementsAre("in lock = two"));
  EXPECT_EQ(left_out("log"), "unchanged");
  EXPECT_EQ(left_out("empty"), "unchanged");
}

TEST_P(TrackerInheritedTest, OneThatIsWrittenToIsAnOutput) {
  scenario.put("log", "one");
  scenario.put("empty", "");
  scenario.begin();
  inherit(3, RecordOp::kWrite, "log");
  inherit(4, RecordOp::kWrite, "empty");
  testing::write_file(scenario.path("log"), "onetwo");
  testing::write_file(scenario.path("empty"), "two");
  EXPECT_THAT(end(), ElementsAre("out empty: created = two", "out log: modified = onetwo"));
}

TEST_P(TrackerInheritedTest, ChangedWhileOthersWroteToItIsAStream) {
  std::vector<std::uint64_t> lookups;
  TrackerScenario shared({.written_outside = [&](const wire::Stamp& file) {
    lookups.push_back(file.inode);
    return true;
  }});
  for (const char* name : {"log", "same", "out", "own"}) shared.put(name, "one");
  shared.begin();
  inherit(shared, 3, RecordOp::kWrite, "log");
  inherit(shared, 4, RecordOp::kWrite, "same");
  inherit(shared, 5, RecordOp::kWrite, "out");
  inherit(shared, 1, RecordOp::kWrite, "out");
  inherit(shared, 6, RecordOp::kWrite, "own");
  for (const char* name : {"log", "out"}) testing::write_file(shared.path(name), "onetwo");
  shared.append("own", "two");
  EXPECT_THAT(report_lines(shared.finish(), {"onetwo"}),
              ElementsAre("out out: modified = onetwo", "out own: modified = onetwo"))
      << "standard output, and what the run opened by itself, are its own";
  EXPECT_EQ(shared.finish().reasons["log"], "shared");
  EXPECT_EQ(shared.finish().reasons["same"], "unchanged");
  EXPECT_THAT(lookups, ::testing::Each(shared.stamp("log").inode)) << "only of what changed";
}

TEST_P(TrackerInheritedTest, ALogThatIsRotatedIsNotMissed) {
  scenario.put("rotated", "one");
  scenario.put("removed", "one");
  scenario.begin();
  inherit(3, RecordOp::kWrite, "rotated");
  inherit(4, RecordOp::kWrite, "removed");
  fs::rename(scenario.path("rotated"), scenario.path("rotated.1"));
  testing::write_file(scenario.path("rotated"), "two");
  fs::remove(scenario.path("removed"));
  EXPECT_THAT(end(), IsEmpty());
  EXPECT_EQ(left_out("rotated"), "shared");
}

TEST_P(TrackerInheritedTest, WhereAChangeNeedNotShowItIsTakenToBeOne) {
  scenario.put("log", "one");
  scenario.begin();
  inherit(3, RecordOp::kWrite, "log", flag::kRacy);
  EXPECT_THAT(end(), ElementsAre("out log: modified = one"));
}

TEST_P(TrackerInheritedTest, WhatTheRunDoesToItByNameCounts) {
  scenario.put("log", "one");
  scenario.begin();
  inherit(3, RecordOp::kWrite, "log");
  scenario.rename("log", "kept");
  EXPECT_THAT(end(), ElementsAre("in log = one", "out kept: renamed from log = one"));
}

}  // namespace
}  // namespace assay::lineage
