#include "lineage/record/part_folder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class PartFolderTest : public ::testing::Test {
 protected:
  PartFolder folder_of(int rank, const std::string& recorder) {
    auto opened = PartFolder::open({.rank = rank, .ranks = 3, .folder = folder()}, "n1", recorder);
    EXPECT_TRUE(opened) << opened.error().line();
    return *std::move(opened);
  }
  fs::path folder() const { return dir_.path() / ".parts-job"; }

  base::testing::TempDir dir_;
};

TEST_F(PartFolderTest, NothingIsLeftBehindWhereRank0IsNotRecorded) {
  const PartFolder one = folder_of(1, "b");
  const PartFolder two = folder_of(2, "c");
  EXPECT_FALSE(one.hand_over(Part(), false));
  one.leave();
  EXPECT_TRUE(fs::exists(folder())) << "rank 2 still uses it";
  // It received nothing, and rank 0 does not appear.
  const auto refused = two.hand_over(Part(), std::nullopt, 1ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().line(), "rank 0, which records the run, did not start");
  two.leave();
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(PartFolderTest, ARankThatHasNotMetRank0HandsOverIfItIsThere) {
  const PartFolder zero = folder_of(0, "a");
  const PartFolder one = folder_of(1, "b");
  EXPECT_TRUE(one.hand_over(Part(), std::nullopt, 1ms));
  one.leave();
  EXPECT_TRUE(fs::exists(one.file(1, "part")));
  EXPECT_TRUE(fs::exists(one.file(1, "state"))) << "says whose part it is";
  zero.remove();
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(PartFolderTest, WhatALaterAttemptUsesIsNotRemoved) {
  const PartFolder killed = folder_of(0, "a");
  const PartFolder later = folder_of(0, "b");
  killed.remove();
  EXPECT_TRUE(fs::exists(folder()));
  later.remove();
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(PartFolderTest, OtherNodesSeeThatARunIsAlive) {
  const PartFolder zero = folder_of(0, "a");
  ASSERT_TRUE(zero.note_in(dir_.path()));
  EXPECT_TRUE(PartFolder::of_interrupted(dir_.path(), "a")->is_run_alive());
  EXPECT_FALSE(PartFolder::of_interrupted(dir_.path(), "b")->is_run_alive()) << "it is another's";
  fs::last_write_time(zero.file(0, "state"), fs::file_time_type::clock::now() - 1h);
  EXPECT_FALSE(PartFolder::of_interrupted(dir_.path(), "a")->is_run_alive());
  const auto alive = zero.start_heartbeat(60s);
  while (!PartFolder::of_interrupted(dir_.path(), "a")->is_run_alive()) {
    std::this_thread::sleep_for(1ms);
  }
}

TEST_F(PartFolderTest, WhoRecoversTheRunFindsIt) {
  const auto zero = PartFolder::open(
      {.rank = 0, .ranks = 7, .folder = dir_.path() / "a b" / ".parts-job", .may_be_old = true},
      "n1", "uid");
  ASSERT_TRUE(zero && zero->note_in(dir_.path()));
  const auto found = PartFolder::of_interrupted(dir_.path(), "uid");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->part().ranks, 7);
  EXPECT_EQ(found->part().folder, zero->part().folder);
  EXPECT_TRUE(found->part().may_be_old);
  EXPECT_EQ(found->recorder(), "uid");
  for (const char* note : {"", "garbage", "7", "7 ", "7 1", "7/p", "99999999999999999999 1 /p"}) {
    std::ofstream(dir_.path() / "parts") << note;
    EXPECT_FALSE(PartFolder::of_interrupted(dir_.path(), "uid")) << note;
  }
}

TEST_F(PartFolderTest, AFolderThatCannotBeMadeIsOneLine) {
  std::ofstream(dir_.path() / "file") << "";
  const auto opened = PartFolder::open(
      {.rank = 0, .ranks = 2, .folder = dir_.path() / "file" / "ranks"}, "n1", "a");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().line().find("cannot be created"), std::string::npos);
}

RC_GTEST_PROP(PartFolderState, OfAnyBytesIsPrintableOrNone, ()) {
  const auto letter = rc::gen::weightedOneOf<char>(
      {{3, rc::gen::just(' ')}, {3, rc::gen::inRange('a', 'z')}, {1, rc::gen::arbitrary<char>()}});
  const auto text = *rc::gen::container<std::string>(letter);
  const auto state = PartFolder::parse_state(text);
  if (!state) return;
  RC_ASSERT(text.starts_with(state->host + " " + state->recorder + " "));
  for (const char c : state->host + state->recorder) RC_ASSERT(c > ' ' && c < 0x7f);
}

}  // namespace
}  // namespace assay::lineage
