#include "lineage/record/collect_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The recorders of rank N are "N-first" and "N-second" in two attempts; rank 0's name the run.
class CollectPartsTest : public ::testing::Test {
 protected:
  // A launcher that tells attempts apart gives each a separate folder.
  bool may_be_old_ = false;

  PartFolder folder_of(int rank, int ranks = 3, const std::string& attempt = "first") {
    auto opened =
        PartFolder::open({.rank = rank,
                          .ranks = ranks,
                          .folder = dir_.path() / ".parts-job",
                          .may_be_old = may_be_old_},
                         "n" + std::to_string(rank + 1), std::to_string(rank) + "-" + attempt);
    EXPECT_TRUE(opened) << opened.error().line();
    return *std::move(opened);
  }
  // `run` is the attempt that was announced to the rank.
  static Part part_of(int rank, const std::string& attempt = "first", bool met = true) {
    Part part;
    part.rank = rank;
    part.host = "n" + std::to_string(rank + 1);
    part.recorder = std::to_string(rank) + "-" + attempt;
    if (met) part.run = "0-" + attempt;
    part.input({"/p/" + attempt + "-" + std::to_string(rank), std::nullopt, 0},
               {"project", true, ""});
    return part;
  }
  static void hand_over(const PartFolder& folder, const Part& part) {
    const auto done = folder.hand_over(part, true);
    EXPECT_TRUE(done) << done.error().line();
  }
  static std::vector<std::string> texts(const CollectedParts& collected) {
    std::vector<std::string> list;
    for (const store::Missed& missing : collected.missing) list.push_back(missing.text);
    return list;
  }
  static std::vector<std::string> inputs(const CollectedParts& collected) {
    std::vector<std::string> list;
    for (const Part& part : collected.parts) list.push_back(part.inputs[0].what.path);
    return list;
  }
  // Short, because no missing rank can still arrive.
  static constexpr PartTimeouts kShort{50ms, 50ms, 10s};
  static constexpr PartTimeouts kLong{60s, 60s, 60s};
  std::filesystem::path at(const char* name) const { return dir_.path() / ".parts-job" / name; }

  base::testing::TempDir dir_;
};

TEST_F(CollectPartsTest, Rank0GetsEveryPart) {
  const PartFolder first = folder_of(0);
  std::thread others([&] {
    for (const int rank : {2, 1}) {
      const PartFolder own = folder_of(rank);
      const auto start_heartbeat = own.start_heartbeat(PartFolder::kPartHeartbeat);
      hand_over(own, part_of(rank));
    }
  });
  const auto collected = collect_parts(first, kLong, {});
  others.join();
  EXPECT_THAT(inputs(collected), ElementsAre("/p/first-1", "/p/first-2"));
  EXPECT_THAT(texts(collected), IsEmpty());
}

TEST_F(CollectPartsTest, RanksThatDoNotComeAreNamedWithTheirNode) {
  const PartFolder first = folder_of(0, 4);
  hand_over(folder_of(1, 4), part_of(1));
  (void)folder_of(3, 4);  // began, and was killed
  const auto collected = collect_parts(first, kShort, {});
  EXPECT_EQ(collected.parts.size(), 1U);
  EXPECT_THAT(texts(collected), ElementsAre("what rank 2 did is not recorded: no report received",
                                            "what rank 3 on n4 did is not recorded: its part is "
                                            "missing, and nothing has changed for 0.05 s"));
}

TEST_F(CollectPartsTest, WhatTakesTooLongIsNotCalledSilent) {
  const PartFolder first = folder_of(0, 2);
  const PartFolder other = folder_of(1, 2);
  const auto start_heartbeat = other.start_heartbeat(1ms);
  const auto collected = collect_parts(first, {60s, 60s, 200ms}, {});
  EXPECT_THAT(texts(collected),
              ElementsAre("what rank 1 on n2 did is not recorded: it was still writing its part "
                          "after 0.2 s, the longest that rank 0 waits"));
}

TEST_F(CollectPartsTest, APartThatTakesLongIsWaitedForWhileItsRankWorks) {
  const PartFolder first = folder_of(0, 2);
  const PartFolder other = folder_of(1, 2);
  std::thread slow([&] {
    const auto start_heartbeat = other.start_heartbeat(PartFolder::kPartHeartbeat);
    std::this_thread::sleep_for(2500ms);
    hand_over(other, part_of(1));
  });
  // The rank sends a heartbeat every second.
  const auto collected = collect_parts(first, {20s, 20s, 60s}, {});
  slow.join();
  EXPECT_EQ(collected.parts.size(), 1U);
}

TEST_F(CollectPartsTest, GarbageIsNoPart) {
  const PartFolder first = folder_of(0, 4);
  std::ofstream(at("rank-1.part")) << "assay part 2\nwhatever";
  hand_over(folder_of(2, 4), part_of(1));  // the part of another rank
  hand_over(folder_of(3, 4), part_of(3));
  const auto collected = collect_parts(first, kShort, {});
  EXPECT_THAT(inputs(collected), ElementsAre("/p/first-3"));
  EXPECT_THAT(texts(collected), ElementsAre(HasSubstr("rank-1.part: is damaged"),
                                            HasSubstr("its file belongs to another rank")));
}

TEST_F(CollectPartsTest, ARankThatHasNotMetRank0CountsInAFolderOfItsOwn) {
  const PartFolder first = folder_of(0, 2);
  hand_over(folder_of(1, 2), part_of(1, "first", false));
  EXPECT_EQ(collect_parts(first, kShort, {}).parts.size(), 1U);
}

// The same folder for every attempt, as torchrun and mpirun without names for jobs have it.
class RepeatedAttempts : public CollectPartsTest {
 protected:
  RepeatedAttempts() { may_be_old_ = true; }
};

TEST_F(RepeatedAttempts, PartsOfAnEarlierOneDoNotCount) {
  hand_over(folder_of(1), part_of(1));
  hand_over(folder_of(2), part_of(2));
  const PartFolder again = folder_of(0, 3, "second");
  hand_over(folder_of(2, 3, "second"), part_of(2, "second"));
  const auto collected = collect_parts(again, kShort, {});
  EXPECT_THAT(inputs(collected), ElementsAre("/p/second-2"));
  EXPECT_THAT(
      texts(collected),
      ElementsAre("what rank 1 on n2 did is not recorded: its part belongs to an earlier attempt"));
}

// A rank may be faster than rank 0, whose recorder must not mistake its files for old ones.
TEST_F(RepeatedAttempts, RanksMayComeAndEndBeforeRank0Comes) {
  hand_over(folder_of(1, 2), part_of(1));
  (void)folder_of(1, 2, "second");
  hand_over(folder_of(1, 2, "second"), part_of(1, "second"));
  const PartFolder again = folder_of(0, 2, "second");
  EXPECT_THAT(inputs(collect_parts(again, kShort, {})), ElementsAre("/p/second-1"));
}

// A process of the earlier attempt that still hashes files hands over after the later one began.
TEST_F(RepeatedAttempts, ALatePartOfAnEarlierOneIsReplacedByTheRightOne) {
  const PartFolder straggler = folder_of(1, 2);
  const PartFolder again = folder_of(0, 2, "second");
  const PartFolder other = folder_of(1, 2, "second");
  hand_over(straggler, part_of(1));
  std::thread slow([&] {
    std::this_thread::sleep_for(300ms);
    hand_over(other, part_of(1, "second"));
  });
  EXPECT_THAT(inputs(collect_parts(again, kLong, {})), ElementsAre("/p/second-1"));
  slow.join();
}

TEST_F(RepeatedAttempts, WhatMayBeOldIsNamedAtOnce) {
  const PartFolder again = folder_of(0, 2, "second");
  hand_over(folder_of(1, 2, "second"), part_of(1, "second", false));
  const auto collected = collect_parts(again, kLong, {});
  EXPECT_THAT(inputs(collected), IsEmpty());
  EXPECT_THAT(texts(collected), ElementsAre(HasSubstr("it ended before connecting to rank 0")));
}

TEST_F(RepeatedAttempts, WhoRecoversOneTakesItsOwnParts) {
  const PartFolder killed = folder_of(0, 3);
  ASSERT_TRUE(killed.note_in(dir_.path()));
  hand_over(folder_of(1), part_of(1));
  (void)folder_of(0, 3, "second");
  hand_over(folder_of(2, 3, "second"), part_of(2, "second"));
  const auto found = PartFolder::of_interrupted(dir_.path(), "0-first");
  ASSERT_TRUE(found);
  const auto collected = collect_parts(*found, {0ms, 0ms, 0ms}, {});
  EXPECT_THAT(inputs(collected), ElementsAre("/p/first-1"));
}

}  // namespace
}  // namespace assay::lineage
