#include "lineage/record/part_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

using namespace std::chrono_literals;

class PartFolderTest : public ::testing::Test {
 protected:
  PartFolder folder_of(int rank, int ranks = 3) {
    auto opened =
        PartFolder::open({.rank = rank, .ranks = ranks, .folder = dir_.path() / ".parts-job"},
                         "n" + std::to_string(rank + 1));
    EXPECT_TRUE(opened) << opened.error().line();
    return *std::move(opened);
  }
  static Part part_of(int rank) {
    Part part;
    part.rank = rank;
    part.host = "n" + std::to_string(rank + 1);
    part.input({"/p/in-" + std::to_string(rank), std::nullopt, 0}, {"project", true, ""});
    return part;
  }
  // Nobody is waited for who could not still come.
  static constexpr PartFolder::Patience kShort{50ms, 50ms, 10s};
  static constexpr PartFolder::Patience kLong{60s, 60s, 60s};
  std::filesystem::path at(const char* name) const { return dir_.path() / ".parts-job" / name; }

  base::testing::TempDir dir_;
};

TEST_F(PartFolderTest, Rank0GetsEveryPartAndRemovesTheFolder) {
  const PartFolder first = folder_of(0);
  std::thread others([&] {
    for (const int rank : {2, 1}) {
      const PartFolder own = folder_of(rank);
      const auto working = own.working();
      ASSERT_TRUE(own.hand_over(part_of(rank)));
    }
  });
  const auto collected = first.collect(kLong, {});
  others.join();
  ASSERT_EQ(collected.parts.size(), 2U);
  EXPECT_EQ(collected.parts[0].rank, 1);
  EXPECT_EQ(collected.parts[1].inputs[0].what.path, "/p/in-2");
  EXPECT_TRUE(collected.missing.empty());
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / ".parts-job"));
}

TEST_F(PartFolderTest, RanksThatDoNotComeAreNamedWithTheirNode) {
  const PartFolder first = folder_of(0, 4);
  ASSERT_TRUE(folder_of(1, 4).hand_over(part_of(1)));
  (void)folder_of(3, 4);  // began, and was killed
  const auto collected = first.collect(kShort, {});
  EXPECT_EQ(collected.parts.size(), 1U);
  ASSERT_EQ(collected.missing.size(), 2U);
  EXPECT_EQ(collected.missing[0].text().text,
            "what rank 2 did is not recorded: nothing was heard of it");
  EXPECT_EQ(collected.missing[1].text().text,
            "what rank 3 on n4 did is not recorded: it did not come, and nothing has changed for "
            "0.05 s");
}

TEST_F(PartFolderTest, APartThatTakesLongIsWaitedForWhileItsRankWorks) {
  const PartFolder first = folder_of(0, 2);
  const PartFolder other = folder_of(1, 2);
  std::thread slow([&] {
    const auto working = other.working();
    std::this_thread::sleep_for(2500ms);
    EXPECT_TRUE(other.hand_over(part_of(1)));
  });
  // The rank says every second that it works.
  const auto collected = first.collect({20s, 20s, 60s}, {});
  slow.join();
  EXPECT_EQ(collected.parts.size(), 1U);
}

TEST_F(PartFolderTest, GarbageIsNoPart) {
  const PartFolder first = folder_of(0, 3);
  std::ofstream(at("rank-1.part")) << "assay part 1\nwhatever";
  ASSERT_TRUE(folder_of(2).hand_over(part_of(1)));  // says that it is another
  const auto collected = first.collect(kShort, {});
  EXPECT_TRUE(collected.parts.empty());
  ASSERT_EQ(collected.missing.size(), 2U);
  EXPECT_NE(collected.missing[0].why.find("rank-1.part"), std::string::npos);
  EXPECT_EQ(collected.missing[1].why, "its file is of another rank");
}

TEST_F(PartFolderTest, PartsOfAnEarlierAttemptDoNotCountWhereTheyCouldBeThere) {
  ASSERT_TRUE(folder_of(1, 2).hand_over(part_of(1)));
  const auto again = PartFolder::open(
      {.rank = 0, .ranks = 2, .folder = dir_.path() / ".parts-job", .may_be_old = true}, "n1");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->collect(kShort, {}).parts.empty());
}

TEST_F(PartFolderTest, WhoRecoversTheRunFindsThem) {
  const PartFolder first = folder_of(0, 2);
  ASSERT_TRUE(folder_of(1, 2).hand_over(part_of(1)));
  ASSERT_TRUE(first.note_in(dir_.path()));
  const auto found = PartFolder::of_interrupted(dir_.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->collect({0ms, 0ms, 0ms}, {}).parts.size(), 1U);
  std::ofstream(dir_.path() / "parts") << "garbage";
  EXPECT_FALSE(PartFolder::of_interrupted(dir_.path()));
}

TEST_F(PartFolderTest, AFolderThatCannotBeMadeIsOneLine) {
  std::ofstream(dir_.path() / "file") << "";
  const auto opened =
      PartFolder::open({.rank = 0, .ranks = 2, .folder = dir_.path() / "file" / "ranks"}, "n1");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().line().find("cannot be created"), std::string::npos);
}

}  // namespace
}  // namespace assay::lineage
