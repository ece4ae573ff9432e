// Renames, links, folders that move, and paths that lead to one file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::RecordOp;
namespace fs = std::filesystem;

using TrackerNamesTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Modes, TrackerNamesTest, testing::all_modes());

TEST_P(TrackerNamesTest, OneOfTwoLinksGoes) {
  scenario.put("a", "one");
  fs::create_hard_link(scenario.path("a"), scenario.path("b"));
  scenario.begin();
  scenario.read("b");
  scenario.remove("a");
  EXPECT_THAT(end(), ElementsAre("in b = one", "out a: deleted = -"));
}

TEST_P(TrackerNamesTest, BothLinksThatAreReadAreInputs) {
  scenario.put("a", "one");
  fs::create_hard_link(scenario.path("a"), scenario.path("b"));
  scenario.begin();
  scenario.read("a");
  scenario.read("b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = one"));
}

TEST_P(TrackerNamesTest, RenamedIsAnOutputAndItsOldNameAnInput) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.rename("a", "b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, RenameChainsAreOneRename) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.rename("b", "c");
  scenario.rename("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out d: renamed from a = one"));
}

TEST_P(TrackerNamesTest, RenamedBackIsNothing) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.rename("b", "a");
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerNamesTest, RenamedAndThenChangedHasItsPreImage) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.append("b", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = onetwo"));
}

TEST_P(TrackerNamesTest, ReadUnderItsNewNameIsAnInputUnderTheOld) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.read("b");
  scenario.rename("b", "a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerNamesTest, WrittenBesideAndRenamedOverIsModified) {
  scenario.put("final", "one");
  scenario.begin();
  scenario.read("final");
  scenario.create("tmp", "two");
  scenario.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("in final = one", "out final: modified = two"));
}

TEST_P(TrackerNamesTest, MadeAndRenamedIsCreated) {
  scenario.create("tmp", "two");
  scenario.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("out final: created = two"));
}

TEST_P(TrackerNamesTest, RenamedOverAnotherAndMadeAgain) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  scenario.rename("a", "b");
  scenario.create("a", "xyz");
  EXPECT_THAT(end(),
              ElementsAre("in a = one", "out a: modified = xyz", "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, ExchangeSwaps) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  scenario.rename("a", "b", true);
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = two", "out a: renamed from b = two",
                                 "out b: renamed from a = one"));
}

TEST_P(TrackerNamesTest, ExchangeTwiceIsNothing) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  scenario.rename("a", "b", true);
  scenario.rename("b", "a", true);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerNamesTest, LinkedIsAnOutput) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.link("a", "b");
  scenario.create("c", "two");
  scenario.link("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: linked from a = one", "out c: created = two",
                                 "out d: linked from c = two"));
}

TEST_P(TrackerNamesTest, LinkedAndUnlinkedIsRenaming) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.link("a", "b");
  scenario.remove("a");
  scenario.create("tmp", "two");
  scenario.link("tmp", "final");
  scenario.remove("tmp");
  EXPECT_THAT(end(),
              ElementsAre("in a = one", "out b: renamed from a = one", "out final: created = two"));
}

TEST_P(TrackerNamesTest, FilesWithoutANameGetOne) {
  scenario.unnamed_then_link("a", "one");
  EXPECT_THAT(end(), ElementsAre("out a: created = one"));
}

TEST_P(TrackerNamesTest, RenamingAFolderMovesWhatIsKnownBelow) {
  scenario.put("d/a", "one");
  scenario.put("d/sub/b", "two");
  scenario.put("dx/c", "xyz");
  scenario.begin();
  scenario.read("d/a");
  scenario.read("dx/c");
  scenario.create("d/new", "onetwo");
  scenario.rename("d", "e");
  scenario.read("e/sub/b");
  scenario.append("e/a", "two");
  EXPECT_THAT(end(),
              ElementsAre("in d/a = one", "in d/sub/b = two", "in dx/c = xyz",
                          "out e/a: renamed from d/a = onetwo", "out e/new: created = onetwo",
                          "out e/sub/b: renamed from d/sub/b = two"));
}

TEST_P(TrackerNamesTest, SymbolicLinksAndDotsLeadToOneFile) {
  scenario.put("d/a", "one");
  scenario.alias("l", "d");
  scenario.alias("file-link", "d/a");
  scenario.begin();
  scenario.read("l/a");
  scenario.read("./l/../d/./a");
  scenario.read("file-link");
  scenario.overwrite("file-link", "two");
  EXPECT_THAT(end(), ElementsAre("in d/a = one", "out d/a: modified = two"));
}

TEST_P(TrackerNamesTest, ALinkThatIsPointedElsewhereIsNoticed) {
  scenario.put("v1/a", "one");
  scenario.put("v2/a", "two");
  scenario.alias("now", "v1");
  scenario.alias("next", "v2");
  scenario.begin();
  scenario.read("now/a");
  scenario.rename("next", "now");
  scenario.read("now/a");
  EXPECT_THAT(end(), ElementsAre("in v1/a = one", "in v2/a = two"));
}

TEST_P(TrackerNamesTest, MadeThroughALinkThatLeadsToNothing) {
  scenario.alias("l", "real");
  scenario.mode.stamped_creation = false;
  scenario.report(RecordOp::kCreate, "l", nullptr);
  testing::write_file(scenario.path("l"), "one");
  scenario.read("l");
  EXPECT_THAT(end(), ElementsAre("out real: created = one"));
}

}  // namespace
}  // namespace assay::lineage
