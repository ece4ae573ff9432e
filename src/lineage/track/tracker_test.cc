// What makes a file an input or an output. Names: tracker_names_test.cc; content that must be
// hashed in time: tracker_hashes_test.cc.
#include "lineage/track/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using collect::Change;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RecordedResults;
using wire::RecordOp;
namespace fs = std::filesystem;

using TrackerTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Modes, TrackerTest, testing::all_modes());

TEST_P(TrackerTest, AFileThatIsReadIsAnInput) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  scenario.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, SizesAreReported) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  scenario.create("b", "onetwo");
  const RecordedResults& recorded = scenario.finish();
  EXPECT_EQ(recorded.inputs.at("a").size, 3);
  EXPECT_EQ(recorded.outputs.at("b").size, 6);
}

TEST_P(TrackerTest, AFileThatIsMadeIsAnOutputAndReadingItLaterIsNothing) {
  scenario.create("a", "one");
  scenario.read("a");
  scenario.append("a", "two");
  EXPECT_THAT(end(), ElementsAre("out a: created = onetwo"));
}

TEST_P(TrackerTest, ReadThenOverwrittenKeepsThePreImage) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  scenario.overwrite("a", "two");
  scenario.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, WrittenWithoutReadingIsNoInput) {
  scenario.put("a", "one");
  scenario.put("b", "one");
  scenario.begin();
  scenario.overwrite("a", "two");
  scenario.append("b", "two");
  scenario.read("b");
  EXPECT_THAT(end(), ElementsAre("out a: modified = two", "out b: modified = onetwo"));
}

TEST_P(TrackerTest, OpenForReadingAndWritingIsBoth) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.update("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, OpenedForWritingAndNotChangedIsNoOutput) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  scenario.open_only("a");
  scenario.open_only("b", true);
  EXPECT_THAT(end(), ElementsAre("in b = two"));
  const auto& recorded = scenario.finish();
  EXPECT_EQ(recorded.reasons.at("a"), "unchanged");
  EXPECT_EQ(recorded.reasons.at("b"), "unchanged");
}

TEST_P(TrackerTest, ReadWhileOpenForWritingButUnchangedIsAnInput) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.open_only("a");
  scenario.read("a");
  scenario.append("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = onetwo"));
}

TEST_P(TrackerTest, MadeAndRemovedIsTemporary) {
  scenario.create("a", "one");
  scenario.read("a");
  scenario.remove("a");
  EXPECT_THAT(end(), IsEmpty());
  EXPECT_EQ(scenario.finish().reasons.at("a"), "gone");
}

TEST_P(TrackerTest, RemovedIsDeletedAndWhatWasReadIsKnown) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  scenario.read("a");
  scenario.remove("a");
  scenario.remove("b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: deleted = -", "out b: deleted = -"));
}

TEST_P(TrackerTest, RemovedAndMadeAgainIsModified) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  scenario.remove("a");
  scenario.create("a", "two");
  scenario.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, ALateCreationEventIsStillACreation) {
  testing::write_file(scenario.path("a"), "one");
  testing::write_file(scenario.path("b"), "two");
  const auto stamp_a = scenario.stamp("a");
  const auto stamp_b = scenario.stamp("b");
  scenario.read("a");
  scenario.rename("b", "c");
  scenario.report(RecordOp::kCreate, "a", &stamp_a);
  scenario.report(RecordOp::kCreate, "b", &stamp_b);
  EXPECT_THAT(end(), ElementsAre("out a: created = one", "out c: created = two"));
}

TEST_P(TrackerTest, ARemovalThatFailedIsNoRemoval) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  const auto stamp_a = scenario.stamp("a");
  const auto stamp_b = scenario.stamp("b");
  scenario.tracker->before_change(scenario.path("a"), stamp_a, Change::kName);
  scenario.report(RecordOp::kDelete, "a", &stamp_a);
  scenario.tracker->before_change(scenario.path("b"), stamp_b, Change::kName);
  scenario.report(RecordOp::kRename, "b", &stamp_b, 0, "c");
  scenario.report(RecordOp::kCreate, "never", nullptr);
  scenario.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, ProgramsAreInputsAndFiltersApply) {
  scenario.put("tool", "one");
  scenario.put("venv/pyvenv.cfg", "");
  scenario.put("venv/lib/x.py", "two");
  scenario.begin();
  const auto stamp = scenario.stamp("tool");
  scenario.report(RecordOp::kExec, "tool", &stamp);
  scenario.read("venv/lib/x.py");
  const auto system = scenario.stamp("/bin/sh");
  scenario.report(RecordOp::kExec, "/bin/sh", &system);
  scenario.create("a.pyc", "one");
  EXPECT_THAT(end(), ElementsAre("in tool = one"));
  const auto& reasons = scenario.finish().reasons;
  EXPECT_EQ(reasons.at("venv/lib/x.py"), "environment");
  EXPECT_EQ(reasons.at("a.pyc"), "bytecode");
  EXPECT_EQ(reasons.at(fs::canonical("/bin/sh")), "system");
}

TEST_P(TrackerTest, DevicesAndFoldersAreNothing) {
  scenario.folder("d");
  const auto folder = scenario.stamp("d");
  const auto device = scenario.stamp("/dev/null");
  scenario.report(RecordOp::kRead, "d", &folder);
  scenario.report(RecordOp::kRead, "/dev/null", &device);
  scenario.report(RecordOp::kWrite, "/dev/null", &device);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerTest, GapsAreListedOnceAndNotWithoutEnd) {
  for (int i = 0; i < 150; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      auto event = scenario.event(RecordOp::kMissed, "io_uring", "process " + std::to_string(i));
      scenario.tracker->on_event(event);
    }
  }
  const auto& missing = scenario.finish().missing;
  ASSERT_EQ(missing.size(), 101);
  EXPECT_EQ(missing[0].what, "io_uring");
  EXPECT_EQ(missing[0].text, "process 0");
  EXPECT_EQ(missing[100].what, "more");
  EXPECT_THAT(missing[100].text, HasSubstr("100 more"));  // what is not listed is not known again
}

}  // namespace
}  // namespace assay::lineage
