// Contents that are hashed in time, and reports of those that are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using collect::Change;
using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Optional;
using ::testing::Pair;
using testing::RecordedResults;
using testing::report_lines;
using testing::TrackerScenario;
using ::testing::UnorderedElementsAre;
using wire::RecordOp;
namespace fs = std::filesystem;

using TrackerHashesTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Modes, TrackerHashesTest, testing::all_modes());

TEST_P(TrackerHashesTest, ChangedByOthersAfterItWasRead) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  // Once it is hashed, the digest stays that of what was read.
  scenario.tracker->before_change(scenario.path("a"), scenario.stamp("a"), Change::kContent);
  scenario.write_outside("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "missed changed"));
  EXPECT_THAT(scenario.finish().missing[0].text, HasSubstr("/a was changed by another program"));
}

TEST_P(TrackerHashesTest, ChangedByOthersBeforeItCouldBeHashed) {
  scenario.put("a", "one");
  scenario.put("b", "two");
  scenario.begin();
  const auto stamp_a = scenario.stamp("a");
  const auto stamp_b = scenario.stamp("b");
  scenario.write_outside("a", "onetwo");
  fs::remove(scenario.path("b"));
  scenario.report(RecordOp::kRead, "a", &stamp_a);
  scenario.report(RecordOp::kRead, "b", &stamp_b);
  EXPECT_THAT(end(), UnorderedElementsAre("in a = -", "in b = -", "missed changed", "missed gone"));
}

TEST_P(TrackerHashesTest, TooLargeToHashWhileAProcessWaits) {
  TrackerScenario small({.pre_image_limit = 3});
  small.put("a", "onetwo");
  small.put("b", "one");
  small.begin();
  small.update("a", "two");
  small.update("b", "two");
  EXPECT_THAT(report_lines(small.finish(), {"one", "two", "twotwo"}),
              ElementsAre("in a = -", "in b = one", "out a: modified = twotwo",
                          "out b: modified = two", "missed pre-image"));
  EXPECT_THAT(small.finish().missing[0].text, HasSubstr("/a (6 bytes)"));
}

TEST_P(TrackerHashesTest, AnOutputHasTheDigestOfItsEarlierContent) {
  for (const char* name : {"appended", "emptied", "read_emptied", "updated", "moved", "left"}) {
    scenario.put(name, "one");
  }
  scenario.begin();
  scenario.append("appended", "two");
  scenario.overwrite("emptied", "two");
  scenario.read("read_emptied");
  scenario.overwrite("read_emptied", "two");
  scenario.update("updated", "two");
  scenario.rename("moved", "there");
  scenario.append("there", "two");
  scenario.open_only("left");
  scenario.create("made", "one");
  scenario.append("made", "two");
  const RecordedResults& recorded = scenario.finish();
  std::map<std::string, std::optional<hash::Digest>> before;
  for (const auto& [name, output] : recorded.outputs) before[name] = output.before;
  const auto one = digest_of("one");
  EXPECT_THAT(before,
              ElementsAre(Pair("appended", Optional(one)), Pair("emptied", Eq(std::nullopt)),
                          Pair("made", Eq(std::nullopt)), Pair("read_emptied", Eq(std::nullopt)),
                          Pair("there", Optional(one)), Pair("updated", Optional(one))));
  EXPECT_FALSE(recorded.inputs.contains("appended")) << "it was not read";
  EXPECT_THAT(recorded.missing, IsEmpty());
}

TEST_P(TrackerHashesTest, WhatIsTooLargeToAppendToIsNotLacking) {
  TrackerScenario small({.unread_limit = 2});
  small.put("a", "one");
  small.begin();
  small.append("a", "two");
  EXPECT_EQ(small.finish().outputs.at("a").before, std::nullopt);
  EXPECT_THAT(small.finish().missing, IsEmpty());
}

// Records of reads come late: by then the bytes have changed.
TEST_P(TrackerHashesTest, ReadAfterItWasOpenedForWriting) {
  scenario.put("a", "one");
  scenario.begin();
  const auto before = scenario.stamp("a");
  scenario.open_only("a");
  testing::write_file(scenario.path("a"), "two");
  scenario.report(RecordOp::kRead, "a", &before);
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: modified = two"));
}

TEST_P(TrackerHashesTest, ChangedAfterItsLastNameWasRemoved) {
  scenario.put("a", "one");
  scenario.begin();
  scenario.read("a");
  const base::UniqueFd held(::open(scenario.path("a").c_str(), O_RDWR));
  scenario.remove("a");
  const std::string link = "/proc/self/fd/" + std::to_string(held.get());
  const auto nameless = scenario.stamp(link);
  const std::string gone = scenario.path("a") + " (deleted)";
  scenario.tracker->before_change(gone, nameless, Change::kContentReadable);
  ASSERT_EQ(::pwrite(held.get(), "two", 3, 0), 3);
  scenario.report(RecordOp::kRead, gone, &nameless, wire::flag::kWritable);
  EXPECT_THAT(end(), ElementsAre("in a = one", "out a: deleted = -"));
}

TEST_P(TrackerHashesTest, ManyFilesAreRemovedBeforeTheyAreHashed) {
  TrackerScenario few({.max_open_files = 2});
  for (int i = 0; i < 50; ++i) few.put("f" + std::to_string(i), std::to_string(i));
  few.begin();
  for (int i = 0; i < 50; ++i) few.read("f" + std::to_string(i));
  for (int i = 0; i < 50; ++i) few.remove("f" + std::to_string(i));
  const RecordedResults& recorded = few.finish();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(recorded.inputs.at("f" + std::to_string(i)).blake3, digest_of(std::to_string(i)));
  }
  EXPECT_EQ(recorded.outputs.size(), 50);
  EXPECT_THAT(recorded.missing, IsEmpty());
}

TEST_P(TrackerHashesTest, WhatCannotBeReadIsReported) {
  scenario.put("a", "one");
  fs::permissions(scenario.path("a"), fs::perms::none);
  scenario.begin();
  const auto stamp = scenario.stamp("a");
  // Root reads everything, so the test is someone else for a while.
  const uid_t me = ::geteuid();
  ASSERT_EQ(::seteuid(me == 0 ? 65534 : me), 0);
  scenario.report(RecordOp::kRead, "a", &stamp);
  const auto lines = end();
  ASSERT_EQ(::seteuid(me), 0);
  EXPECT_THAT(lines, ElementsAre("in a = -", "missed unreadable"));
  EXPECT_THAT(scenario.finish().missing[0].text, HasSubstr("/a: cannot open"));
}

TEST_P(TrackerHashesTest, FilesInAFolderWithoutPermission) {
  scenario.folder("d");
  scenario.put("d/a", "one");
  scenario.put("d/b", "one");
  scenario.begin();
  scenario.read("d/a");
  scenario.append("d/b", "two");
  scenario.create("d/c", "two");
  fs::permissions(scenario.path("d"), fs::perms::none);
  const uid_t me = ::geteuid();
  ASSERT_EQ(::seteuid(me == 0 ? 65534 : me), 0);
  const RecordedResults& recorded = scenario.finish();
  ASSERT_EQ(::seteuid(me), 0);
  fs::permissions(scenario.path("d"), fs::perms::owner_all);
  EXPECT_THAT(recorded.outputs, ElementsAre(Key("d/b"), Key("d/c")));
  for (const auto& [name, output] : recorded.outputs) EXPECT_EQ(output.blake3, std::nullopt);
  for (const auto& missed : recorded.missing) EXPECT_EQ(missed.what, "unreadable") << missed.text;
  EXPECT_FALSE(recorded.missing.empty());
}

TEST_P(TrackerHashesTest, WhatWaitsForTheQueueIsHashedThoughNothingElseHappens) {
  constexpr int kFiles = 40;
  testing::FakeCache cache;
  TrackerScenario quiet({.max_pending = 3, .hashing = {.cache = &cache, .cache_from = 0}});
  for (int i = 0; i < kFiles; ++i) quiet.put("f" + std::to_string(i), std::to_string(i));
  quiet.begin();
  for (int i = 0; i < kFiles; ++i) quiet.read("f" + std::to_string(i));
  using Clock = std::chrono::steady_clock;
  // The queue's threads have idle priority: on a loaded machine they rarely run.
  const auto deadline = Clock::now() + std::chrono::seconds(100);
  while (cache.entries.size() < kFiles && Clock::now() < deadline) {
    quiet.tracker->on_tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cache.entries.size(), kFiles) << "hashed while the run runs";
}

}  // namespace
}  // namespace assay::lineage
