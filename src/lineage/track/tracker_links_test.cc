// Paths whose meaning changes: symbolic links that are replaced, folders that are renamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::report_lines;
using testing::TrackerScenario;
using wire::RecordOp;
namespace fs = std::filesystem;

class TrackerLinksTest : public testing::TrackerFixture {
 protected:
  void SetUp() override {
    TrackerFixture::SetUp();
    for (const char* folder : {"run1", "run2"}) scenario.folder(folder);
    scenario.put("run1/x", "one");
    scenario.put("run2/x", "two");
    scenario.alias("latest", "run1");
    scenario.begin();
  }
  void turn() {
    fs::remove(scenario.path("latest"));
    fs::create_directory_symlink("run2", scenario.path("latest"));
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, TrackerLinksTest, testing::all_modes());

TEST_P(TrackerLinksTest, TurnedByTheRun) {
  scenario.read("latest/x");
  scenario.report(RecordOp::kRelink, "latest", nullptr);
  turn();
  scenario.read("latest/x");
  scenario.create("latest/out", "xyz");
  EXPECT_THAT(end(),
              ElementsAre("in run1/x = one", "in run2/x = two", "out run2/out: created = xyz"));
}

TEST_P(TrackerLinksTest, TurnedByAnotherProgram) {
  scenario.read("latest/x");
  turn();
  scenario.read("latest/x");
  EXPECT_THAT(end(), ElementsAre("in run1/x = one", "in run2/x = two"));
}

TEST_P(TrackerLinksTest, ANewFileBehindALinkThatAnotherProgramTurned) {
  scenario.read("latest/x");
  turn();
  scenario.mode.stamped_creation = true;  // else the collector reports the path without the link
  scenario.create("latest/out", "xyz");
  EXPECT_THAT(end(), ElementsAre("in run1/x = one", "out run2/out: created = xyz"));
}

TEST_P(TrackerLinksTest, AFolderMovesWithFilesThatWereNotOpened) {
  scenario.rename("run1", "moved");
  scenario.rename("run2", "run1");
  scenario.read("run1/x");
  EXPECT_THAT(end(), ElementsAre("in run1/x = one", "in run2/x = two",
                                 "out moved/x: renamed from run1/x = one",
                                 "out run1/x: renamed from run2/x = two"));
}

TEST_P(TrackerLinksTest, FoldersChangePlaces) {
  scenario.rename("run1", "run2", true);
  EXPECT_THAT(end(), ElementsAre("in run1/x = one", "in run2/x = two",
                                 "out run1/x: renamed from run2/x = two",
                                 "out run2/x: renamed from run1/x = one"));
}

TEST_P(TrackerLinksTest, AFolderMovesAndComesBack) {
  scenario.rename("run1", "moved");
  scenario.rename("moved", "run1");
  EXPECT_THAT(end(), ElementsAre());
}

TEST_P(TrackerLinksTest, TooManyFilesToFollowAreReported) {
  TrackerScenario few({.max_moved_files = 3});
  few.mode = GetParam();
  few.folder("d");
  for (int i = 0; i < 4; ++i) few.put("d/" + std::to_string(i), "one");
  few.begin();
  few.rename("d", "e");
  EXPECT_EQ(few.finish().outputs.size(), 3);
  ASSERT_EQ(few.finish().missing.size(), 1);
  EXPECT_THAT(few.finish().missing[0].text, HasSubstr("/d was moved with more than 3 files"));
}

TEST_P(TrackerLinksTest, LinksToWhatWasRenamed) {
  scenario.put("a", "one");
  scenario.put("c", "two");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.link("b", "hb");
  scenario.link("c", "hc");
  scenario.rename("c", "d");
  scenario.create("made", "xyz");
  scenario.rename("made", "moved");
  scenario.link("moved", "to_moved");
  EXPECT_THAT(end(), ElementsAre("in a = one", "in c = two", "out b: renamed from a = one",
                                 "out d: renamed from c = two", "out hb: linked from b = one",
                                 "out hc: linked from d = two", "out moved: created = xyz",
                                 "out to_moved: linked from moved = xyz"));
}

}  // namespace
}  // namespace assay::lineage
