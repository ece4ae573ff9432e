// Renames, links, folders that move, and paths that lead to one file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Op;
namespace fs = std::filesystem;

using TrackerNamesTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Modes, TrackerNamesTest, testing::all_modes());

TEST_P(TrackerNamesTest, OneOfTwoLinksGoes) {
  scene.put("a", "one");
  fs::create_hard_link(scene.path("a"), scene.path("b"));
  scene.begin();
  scene.read("b");
  scene.remove("a");
  EXPECT_THAT(end(), ElementsAre("in b = one", "out a: deleted = -"));
}

TEST_P(TrackerNamesTest, BothLinksThatAreReadAreInputs) {
  scene.put("a", "one");
  fs::create_hard_link(scene.path("a"), scene.path("b"));
  scene.begin();
  scene.read("a");
  scene.read("b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = one"));
}

TEST_P(TrackerNamesTest, RenamedIsAnOutputAndItsOldNameAnInput) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, RenameChainsAreOneRename) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.rename("b", "c");
  scene.rename("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out d: renamed from a = one"));
}

TEST_P(TrackerNamesTest, RenamedBackIsNothing) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.rename("b", "a");
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerNamesTest, RenamedAndThenChangedHasItsPreImage) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.append("b", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = onetwo"));
}

TEST_P(TrackerNamesTest, ReadUnderItsNewNameIsAnInputUnderTheOld) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.read("b");
  scene.rename("b", "a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerNamesTest, WrittenBesideAndRenamedOverIsModified) {
  scene.put("final", "one");
  scene.begin();
  scene.read("final");
  scene.create("tmp", "two");
  scene.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("in final = one", "out final: modified = two"));
}

TEST_P(TrackerNamesTest, MadeAndRenamedIsCreated) {
  scene.create("tmp", "two");
  scene.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("out final: created = two"));
}

TEST_P(TrackerNamesTest, RenamedOverAnotherAndMadeAgain) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b");
  scene.create("a", "xyz");
  EXPECT_THAT(end(),
              ElementsAre("in a = one", "out a: modified = xyz", "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, ExchangeSwaps) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b", true);
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = two", "out a: renamed from b = two",
                                 "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, ExchangeTwiceIsNothing) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b", true);
  scene.rename("b", "a", true);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerNamesTest, LinkedIsAnOutput) {
  scene.put("a", "one");
  scene.begin();
  scene.link("a", "b");
  scene.create("c", "two");
  scene.link("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: linked from a = one", "out c: created = two",
                                 "out d: linked from c = two"));
}

TEST_P(TrackerNamesTest, LinkedAndUnlinkedIsRenaming) {
  scene.put("a", "one");
  scene.begin();
  scene.link("a", "b");
  scene.remove("a");
  scene.create("tmp", "two");
  scene.link("tmp", "final");
  scene.remove("tmp");
  EXPECT_THAT(end(),
              ElementsAre("in a = one", "out b: renamed from a = one", "out final: created = two"));
}

TEST_P(TrackerNamesTest, FilesWithoutANameGetOne) {
  scene.unnamed_then_link("a", "one");
  EXPECT_THAT(end(), ElementsAre("out a: created = one"));
}

TEST_P(TrackerNamesTest, RenamingAFolderMovesWhatIsKnownBelow) {
  scene.put("d/a", "one");
  scene.put("d/sub/b", "two");
  scene.put("dx/c", "xyz");
  scene.begin();
  scene.read("d/a");
  scene.read("dx/c");
  scene.create("d/new", "onetwo");
  scene.rename("d", "e");
  scene.read("e/sub/b");
  scene.append("e/a", "two");
  EXPECT_THAT(end(),
              ElementsAre("in d/a = one", "in d/sub/b = two", "in dx/c = xyz",
                          "out e/a: renamed from d/a = onetwo", "out e/new: created = onetwo",
                          "out e/sub/b: renamed from d/sub/b = two"));
}

TEST_P(TrackerNamesTest, SymbolicLinksAndDotsLeadToOneFile) {
  scene.put("d/a", "one");
  scene.alias("l", "d");
  scene.alias("file-link", "d/a");
  scene.begin();
  scene.read("l/a");
  scene.read("./l/../d/./a");
  scene.read("file-link");
  scene.overwrite("file-link", "two");
  EXPECT_THAT(end(), ElementsAre("in d/a = one", "out d/a: modified = two"));
}

TEST_P(TrackerNamesTest, ALinkThatIsPointedElsewhereIsNoticed) {
  scene.put("v1/a", "one");
  scene.put("v2/a", "two");
  scene.alias("now", "v1");
  scene.alias("next", "v2");
  scene.begin();
  scene.read("now/a");
  scene.rename("next", "now");
  scene.read("now/a");
  EXPECT_THAT(end(), ElementsAre("in v1/a = one", "in v2/a = two"));
}

TEST_P(TrackerNamesTest, MadeThroughALinkThatLeadsToNothing) {
  scene.alias("l", "real");
  scene.mode.stamped_creation = false;
  scene.report(Op::kCreate, "l", nullptr);
  testing::write_file(scene.path("l"), "one");
  scene.read("l");
  EXPECT_THAT(end(), ElementsAre("out real: created = one"));
}

}  // namespace
}  // namespace assay::lineage
