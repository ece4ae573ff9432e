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
using testing::Recorded;
using wire::Op;
namespace fs = std::filesystem;

using TrackerTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Modes, TrackerTest, testing::all_modes());

TEST_P(TrackerTest, AFileThatIsReadIsAnInput) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, SizesAreReported) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  scene.create("b", "onetwo");
  const Recorded& recorded = scene.finish();
  EXPECT_EQ(recorded.inputs.at("a").size, 3);
  EXPECT_EQ(recorded.outputs.at("b").size, 6);
}

TEST_P(TrackerTest, AFileThatIsMadeIsAnOutputAndReadingItLaterIsNothing) {
  scene.create("a", "one");
  scene.read("a");
  scene.append("a", "two");
  EXPECT_THAT(end(), ElementsAre("out a: created = onetwo"));
}

TEST_P(TrackerTest, ReadThenOverwrittenKeepsThePreImage) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  scene.overwrite("a", "two");
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, WrittenWithoutReadingIsNoInput) {
  scene.put("a", "one");
  scene.put("b", "one");
  scene.begin();
  scene.overwrite("a", "two");
  scene.append("b", "two");
  scene.read("b");
  EXPECT_THAT(end(), ElementsAre("out a: modified = two", "out b: modified = onetwo"));
}

TEST_P(TrackerTest, OpenForReadingAndWritingIsBoth) {
  scene.put("a", "one");
  scene.begin();
  scene.update("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, OpenedForWritingAndNotChangedIsNoOutput) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.open_only("a");
  scene.open_only("b", true);
  EXPECT_THAT(end(), ElementsAre("in b = two"));
  const auto& recorded = scene.finish();
  EXPECT_EQ(recorded.reasons.at("a"), "unchanged");
  EXPECT_EQ(recorded.reasons.at("b"), "unchanged");
}

TEST_P(TrackerTest, ReadWhileOpenForWritingButUnchangedIsAnInput) {
  scene.put("a", "one");
  scene.begin();
  scene.open_only("a");
  scene.read("a");
  scene.append("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = onetwo"));
}

TEST_P(TrackerTest, MadeAndRemovedIsTemporary) {
  scene.create("a", "one");
  scene.read("a");
  scene.remove("a");
  EXPECT_THAT(end(), IsEmpty());
  EXPECT_EQ(scene.finish().reasons.at("a"), "gone");
}

TEST_P(TrackerTest, RemovedIsDeletedAndWhatWasReadIsKnown) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.read("a");
  scene.remove("a");
  scene.remove("b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: deleted = -", "out b: deleted = -"));
}

TEST_P(TrackerTest, RemovedAndMadeAgainIsModified) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  scene.remove("a");
  scene.create("a", "two");
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerTest, ALateCreationEventIsStillACreation) {
  testing::write_file(scene.path("a"), "one");
  testing::write_file(scene.path("b"), "two");
  const auto stamp_a = scene.stamp("a");
  const auto stamp_b = scene.stamp("b");
  scene.read("a");
  scene.rename("b", "c");
  scene.report(Op::kCreate, "a", &stamp_a);
  scene.report(Op::kCreate, "b", &stamp_b);
  EXPECT_THAT(end(), ElementsAre("out a: created = one", "out c: created = two"));
}

TEST_P(TrackerTest, ARemovalThatFailedIsNoRemoval) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  const auto stamp_a = scene.stamp("a");
  const auto stamp_b = scene.stamp("b");
  scene.tracker->before_change(scene.path("a"), stamp_a, Change::kName);
  scene.report(Op::kDelete, "a", &stamp_a);
  scene.tracker->before_change(scene.path("b"), stamp_b, Change::kName);
  scene.report(Op::kRename, "b", &stamp_b, 0, "c");
  scene.report(Op::kCreate, "never", nullptr);
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, ProgramsAreInputsAndFiltersApply) {
  scene.put("tool", "one");
  scene.put("venv/pyvenv.cfg", "");
  scene.put("venv/lib/x.py", "two");
  scene.begin();
  const auto stamp = scene.stamp("tool");
  scene.report(Op::kExec, "tool", &stamp);
  scene.read("venv/lib/x.py");
  const auto system = scene.stamp("/bin/sh");
  scene.report(Op::kExec, "/bin/sh", &system);
  scene.create("a.pyc", "one");
  EXPECT_THAT(end(), ElementsAre("in tool = one"));
  const auto& reasons = scene.finish().reasons;
  EXPECT_EQ(reasons.at("venv/lib/x.py"), "environment");
  EXPECT_EQ(reasons.at("a.pyc"), "bytecode");
  EXPECT_EQ(reasons.at(fs::canonical("/bin/sh")), "system");
}

TEST_P(TrackerTest, DevicesAndFoldersAreNothing) {
  scene.folder("d");
  const auto folder = scene.stamp("d");
  const auto device = scene.stamp("/dev/null");
  scene.report(Op::kRead, "d", &folder);
  scene.report(Op::kRead, "/dev/null", &device);
  scene.report(Op::kWrite, "/dev/null", &device);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerTest, GapsAreListedOnceAndNotWithoutEnd) {
  for (int i = 0; i < 150; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      auto event = scene.event(Op::kMissed, "io_uring", "process " + std::to_string(i));
      scene.tracker->on_event(event);
    }
  }
  const auto& missing = scene.finish().missing;
  ASSERT_EQ(missing.size(), 101);
  EXPECT_EQ(missing[0].what, "io_uring");
  EXPECT_EQ(missing[0].text, "process 0");
  EXPECT_EQ(missing[100].what, "more");
  EXPECT_THAT(missing[100].text, HasSubstr("100 more"));  // what is not listed is not known again
}

}  // namespace
}  // namespace assay::lineage
