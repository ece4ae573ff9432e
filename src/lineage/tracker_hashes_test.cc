// Content that is hashed in time, or not, and then it is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "lineage/testing/fake_cache.h"
#include "lineage/testing/tracker_fixture.h"

namespace assay::lineage {
namespace {

using collect::Change;
using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Recorded;
using testing::Scene;
using testing::told;
using ::testing::UnorderedElementsAre;
using wire::Op;
namespace fs = std::filesystem;

using TrackerHashesTest = testing::TrackerFixture;
INSTANTIATE_TEST_SUITE_P(Manners, TrackerHashesTest, testing::all_manners());

TEST_P(TrackerHashesTest, ChangedByOthersAfterItWasRead) {
  scene.put("a", "one");
  scene.begin();
  scene.read("a");
  // Once it is hashed, the digest stays that of what was read.
  scene.tracker->about_to_change(scene.path("a"), scene.stamp("a"), Change::kContent);
  scene.write_outside("a", "two");
  EXPECT_THAT(end(), ElementsAre("in a = one", "missed changed"));
  EXPECT_THAT(scene.finish().missing[0].text, HasSubstr("/a was changed by another program"));
}

TEST_P(TrackerHashesTest, ChangedByOthersBeforeItCouldBeHashed) {
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

TEST_P(TrackerHashesTest, TooLargeToHashWhileAProcessWaits) {
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

TEST_P(TrackerHashesTest, ManyFilesAreRemovedBeforeTheyAreHashed) {
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

TEST_P(TrackerHashesTest, WhatCannotBeReadIsSaid) {
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

TEST_P(TrackerHashesTest, WhatWaitsForTheQueueIsHashedThoughNothingElseHappens) {
  constexpr int kFiles = 40;
  testing::FakeCache cache;
  Scene quiet({.most_pending = 3, .hashing = {.cache = &cache, .cache_from = 0}});
  for (int i = 0; i < kFiles; ++i) quiet.put("f" + std::to_string(i), std::to_string(i));
  quiet.begin();
  for (int i = 0; i < kFiles; ++i) quiet.read("f" + std::to_string(i));
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (cache.entries.size() < kFiles && Clock::now() < deadline) {
    quiet.tracker->meanwhile();
    std::this_thread::yield();
  }
  EXPECT_EQ(cache.entries.size(), kFiles) << "hashed while the job runs";
}

}  // namespace
}  // namespace assay::lineage
