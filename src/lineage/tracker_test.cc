#include "lineage/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lineage/stamp.h"
#include "lineage/testing/scene.h"

namespace assay::lineage {
namespace {

using collect::Change;
using store::OutputStatus;
using ::testing::Contains;
using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::Recorded;
using testing::Scene;
using ::testing::UnorderedElementsAre;
using wire::Op;
namespace fs = std::filesystem;

// "created", or "renamed from NAME".
std::string text_of(const store::Output& output) {
  static const std::map<OutputStatus, std::string> kNames = {{OutputStatus::kCreated, "created"},
                                                             {OutputStatus::kModified, "modified"},
                                                             {OutputStatus::kRenamed, "renamed"},
                                                             {OutputStatus::kLinked, "linked"},
                                                             {OutputStatus::kDeleted, "deleted"}};
  return kNames.at(output.status) + (output.from.empty() ? "" : " from " + output.from);
}

// "NAME: STATUS = CONTENT" where the content is looked up among what the test wrote.
std::vector<std::string> told(const Recorded& recorded, const std::vector<std::string>& contents) {
  const auto content = [&](const std::optional<hash::Digest>& digest) -> std::string {
    if (!digest) return "-";
    for (const std::string& text : contents) {
      if (digest_of(text) == *digest) return text;
    }
    return "unknown content";
  };
  std::vector<std::string> lines;
  for (const auto& [name, input] : recorded.inputs) {
    lines.push_back("in " + name + " = " + content(input.blake3));
  }
  for (const auto& [name, output] : recorded.outputs) {
    lines.push_back("out " + name + ": " + text_of(output) + " = " + content(output.blake3));
  }
  for (const auto& missed : recorded.missing) lines.push_back("missed " + missed.what);
  return lines;
}

// Every test in both manners of telling, with and without stamps of new files.
class TrackerTest : public ::testing::TestWithParam<testing::Manner> {
 protected:
  void SetUp() override { scene.manner = GetParam(); }
  std::vector<std::string> end() {
    return told(scene.finish(), {"one", "two", "onetwo", "", "xyz"});
  }
  Scene scene;
};
INSTANTIATE_TEST_SUITE_P(Manners, TrackerTest,
                         ::testing::Values(testing::Manner{true, true},
                                           testing::Manner{true, false},
                                           testing::Manner{false, true},
                                           testing::Manner{false, false}));

TEST_P(TrackerTest, AFileThatIsReadIsAnInput) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, SizesAreTold) {
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

TEST_P(TrackerTest, OneOfTwoLinksGoes) {
  scene.put("a", "one");
  fs::create_hard_link(scene.path("a"), scene.path("b"));
  scene.begin();
  scene.read("b");
  scene.remove("a");
  EXPECT_THAT(end(), ElementsAre("in b = one", "out a: deleted = -"));
}

TEST_P(TrackerTest, BothLinksThatAreReadAreInputs) {
  scene.put("a", "one");
  fs::create_hard_link(scene.path("a"), scene.path("b"));
  scene.begin();
  scene.read("a");
  scene.read("b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = one"));
}

TEST_P(TrackerTest, RenamedIsAnOutputAndItsOldNameAnInput) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = one"));
}

TEST_P(TrackerTest, RenameChainsAreOneRename) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.rename("b", "c");
  scene.rename("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out d: renamed from a = one"));
}

TEST_P(TrackerTest, RenamedBackIsNothing) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.rename("b", "a");
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerTest, RenamedAndThenChangedHasItsPreImage) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.append("b", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: renamed from a = onetwo"));
}

TEST_P(TrackerTest, ReadUnderItsNewNameIsAnInputUnderTheOld) {
  scene.put("a", "one");
  scene.begin();
  scene.rename("a", "b");
  scene.read("b");
  scene.rename("b", "a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, WrittenBesideAndRenamedOverIsModified) {
  scene.put("final", "one");
  scene.begin();
  scene.read("final");
  scene.create("tmp", "two");
  scene.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("in final = one", "out final: modified = two"));
}

TEST_P(TrackerTest, MadeAndRenamedIsCreated) {
  scene.create("tmp", "two");
  scene.rename("tmp", "final");
  EXPECT_THAT(end(), ElementsAre("out final: created = two"));
}

TEST_P(TrackerTest, RenamedOverAnotherAndMadeAgain) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b");
  scene.create("a", "xyz");
  EXPECT_THAT(end(),
              ElementsAre("in a = one", "out a: modified = xyz", "out b: renamed from a = one"));
}

TEST_P(TrackerTest, ExchangeSwaps) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b", true);
  EXPECT_THAT(end(), ElementsAre("in a = one", "in b = two", "out a: renamed from b = two",
                                 "out b: renamed from a = one"));
}

TEST_P(TrackerTest, ExchangeTwiceIsNothing) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  scene.rename("a", "b", true);
  scene.rename("b", "a", true);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerTest, LinkedIsAnOutput) {
  scene.put("a", "one");
  scene.begin();
  scene.link("a", "b");
  scene.create("c", "two");
  scene.link("c", "d");
  EXPECT_THAT(end(), ElementsAre("in a = one", "out b: linked from a = one", "out c: created = two",
                                 "out d: linked from c = two"));
}

TEST_P(TrackerTest, LinkedAndUnlinkedIsRenaming) {
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

TEST_P(TrackerTest, FilesWithoutANameGetOne) {
  scene.unnamed_then_link("a", "one");
  EXPECT_THAT(end(), ElementsAre("out a: created = one"));
}

TEST_P(TrackerTest, RenamingAFolderMovesWhatIsKnownBelow) {
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

TEST_P(TrackerTest, SymbolicLinksAndDotsLeadToOneFile) {
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

TEST_P(TrackerTest, ALinkThatIsPointedElsewhereIsNoticed) {
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

TEST_P(TrackerTest, MadeThroughALinkThatLeadsToNothing) {
  scene.alias("l", "real");
  scene.manner.stamped_creation = false;
  scene.tell(Op::kCreate, "l", nullptr);
  testing::write_file(scene.path("l"), "one");
  scene.read("l");
  EXPECT_THAT(end(), ElementsAre("out real: created = one"));
}

TEST_P(TrackerTest, ACreationThatIsToldLateIsStillACreation) {
  testing::write_file(scene.path("a"), "one");
  testing::write_file(scene.path("b"), "two");
  const auto stamp_a = scene.stamp("a");
  const auto stamp_b = scene.stamp("b");
  scene.read("a");
  scene.rename("b", "c");
  scene.tell(Op::kCreate, "a", &stamp_a);
  scene.tell(Op::kCreate, "b", &stamp_b);
  EXPECT_THAT(end(), ElementsAre("out a: created = one", "out c: created = two"));
}

TEST_P(TrackerTest, ARemovalThatFailedIsNoRemoval) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  const auto stamp_a = scene.stamp("a");
  const auto stamp_b = scene.stamp("b");
  scene.tracker->about_to_change(scene.path("a"), stamp_a, Change::kName);
  scene.tell(Op::kDelete, "a", &stamp_a);
  scene.tracker->about_to_change(scene.path("b"), stamp_b, Change::kName);
  scene.tell(Op::kRename, "b", &stamp_b, 0, "c");
  scene.tell(Op::kCreate, "never", nullptr);
  scene.read("a");
  EXPECT_THAT(end(), ElementsAre("in a = one"));
}

TEST_P(TrackerTest, ChangedByOthersAfterItWasRead) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  // Once it is hashed, the digest stays that of what was read.
  scene.tracker->about_to_change(scene.path("a"), scene.stamp("a"), Change::kContent);
  scene.write_outside("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "missed changed"));
  EXPECT_THAT(scene.finish().missing[0].text, HasSubstr("/a was changed by another program"));
}

TEST_P(TrackerTest, ChangedByOthersBeforeItCouldBeHashed) {
  scene.put("a", "one");
  scene.put("b", "two");
  scene.begin();
  const auto stamp_a = scene.stamp("a");
  const auto stamp_b = scene.stamp("b");
  scene.write_outside("a", "onetwo");
  fs::remove(scene.path("b"));
  scene.tell(Op::kRead, "a", &stamp_a);
  scene.tell(Op::kRead, "b", &stamp_b);
  EXPECT_THAT(end(), UnorderedElementsAre("in a = -", "in b = -", "missed changed", "missed gone"));
}

TEST_P(TrackerTest, TooLargeToHashWhileAProcessWaits) {
  Scene small({.pre_image_limit = 3});
  small.put("a", "onetwo");
  small.put("b", "one");
  small.begin();
  small.update("a", "two");
  small.update("b", "two");
  EXPECT_THAT(told(small.finish(), {"one", "two", "twotwo"}),
              ElementsAre("in a = -", "in b = one", "out a: modified = twotwo",
                          "out b: modified = two", "missed pre-image"));
  EXPECT_THAT(small.finish().missing[0].text, HasSubstr("/a (6 bytes)"));
}

TEST_P(TrackerTest, ManyFilesAreRemovedBeforeTheyAreHashed) {
  Scene few({.most_held = 2});
  for (int i = 0; i < 50; ++i) few.put("f" + std::to_string(i), std::to_string(i));
  few.begin();
  for (int i = 0; i < 50; ++i) few.read("f" + std::to_string(i));
  for (int i = 0; i < 50; ++i) few.remove("f" + std::to_string(i));
  const Recorded& recorded = few.finish();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(recorded.inputs.at("f" + std::to_string(i)).blake3, digest_of(std::to_string(i)));
  }
  EXPECT_EQ(recorded.outputs.size(), 50);
  EXPECT_THAT(recorded.missing, IsEmpty());
}

TEST_P(TrackerTest, InheritedDescriptors) {
  scene.put("in", "one");
  scene.put("out", "");
  scene.put("log", "one");
  scene.put("both", "two");
  scene.begin();
  for (const auto& [op, name, flags] :
       std::vector<std::tuple<Op, std::string, std::uint16_t>>{{Op::kRead, "in", 0},
                                                               {Op::kWrite, "out", 0},
                                                               {Op::kWrite, "log", 0},
                                                               {Op::kRead, "both", 1}}) {
    const std::string path = scene.path(name);
    auto event = scene.event(op, path);
    event.source = wire::Source::kInherited;
    event.flags = flags;
    event.stamp = scene.stamp(name);
    scene.tracker->happened(event);
  }
  testing::write_file(scene.path("log"), "onetwo");
  EXPECT_THAT(end(), ElementsAre("in both = two", "in in = one", "out both: modified = two",
                                 "out log: modified = onetwo", "out out: created = "));
}

TEST_P(TrackerTest, ProgramsAreInputsAndFiltersApply) {
  scene.put("tool", "one");
  scene.put("venv/pyvenv.cfg", "");
  scene.put("venv/lib/x.py", "two");
  scene.begin();
  const auto stamp = scene.stamp("tool");
  scene.tell(Op::kExec, "tool", &stamp);
  scene.read("venv/lib/x.py");
  const auto system = scene.stamp("/bin/sh");
  scene.tell(Op::kExec, "/bin/sh", &system);
  scene.create("a.pyc", "one");
  EXPECT_THAT(end(), ElementsAre("in tool = one"));
  const auto& reasons = scene.finish().reasons;
  EXPECT_EQ(reasons.at("venv/lib/x.py"), "environment");
  EXPECT_EQ(reasons.at("a.pyc"), "bytecode");
  EXPECT_EQ(reasons.at(fs::canonical("/bin/sh")), "system");
}

TEST_P(TrackerTest, WhatCannotBeReadIsSaid) {
  scene.put("a", "one");
  fs::permissions(scene.path("a"), fs::perms::none);
  scene.begin();
  const auto stamp = scene.stamp("a");
  // Root reads everything, so the test is someone else for a while.
  const uid_t me = ::geteuid();
  ASSERT_EQ(::seteuid(me == 0 ? 65534 : me), 0);
  scene.tell(Op::kRead, "a", &stamp);
  const auto lines = end();
  ASSERT_EQ(::seteuid(me), 0);
  EXPECT_THAT(lines, ElementsAre("in a = -", "missed unreadable"));
  EXPECT_THAT(scene.finish().missing[0].text, HasSubstr("/a: cannot open"));
}

TEST_P(TrackerTest, DevicesAndFoldersAreNothing) {
  scene.folder("d");
  const auto folder = scene.stamp("d");
  const auto device = scene.stamp("/dev/null");
  scene.tell(Op::kRead, "d", &folder);
  scene.tell(Op::kRead, "/dev/null", &device);
  scene.tell(Op::kWrite, "/dev/null", &device);
  EXPECT_THAT(end(), IsEmpty());
}

TEST_P(TrackerTest, GapsAreListedOnceAndNotWithoutEnd) {
  for (int i = 0; i < 150; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      auto event = scene.event(Op::kMissed, "io_uring", "process " + std::to_string(i));
      scene.tracker->happened(event);
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
