#include "store/ranks.h"

#include "store/cleaning.h"
#include "store/run_reader.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

RankRecord rank_with(std::int64_t rank, double step_s, std::optional<double> wait_s) {
  return {.rank = rank,
          .host = "n1",
          .place = "fsdp 0",
          .step = 11,
          .steps = 10,
          .step_s = 10 * step_s,
          .wait_s = wait_s ? std::optional(10 * *wait_s) : std::nullopt,
          .last_step_s = step_s,
          .last_wait_s = wait_s,
          .planned_bytes = 100,
          .memory_bytes = 90,
          .host_bytes = 200};
}

TEST(Ranks, TheSlowestIsTheOneWithMostWorkOfItsOwn) {
  // All steps take as long as the slowest rank's, so waiting is what tells them apart.
  const std::vector<RankRecord> ranks = {rank_with(0, 1.0, 0.5), rank_with(1, 1.0, 0.1),
                                         rank_with(2, 1.0, 0.4)};
  const auto slowest = slowest_of(ranks);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->rank, 1);
  EXPECT_DOUBLE_EQ(slowest->busy_s, 0.9);
  EXPECT_DOUBLE_EQ(slowest->median_busy_s, 0.6);
  EXPECT_NEAR(slowest->slower_by(), 0.5, 1e-12);
}

TEST(Ranks, NobodyIsSlowestWhereWaitingIsNotMeasured) {
  const std::vector<RankRecord> ranks = {rank_with(0, 1.0, {}), rank_with(1, 2.0, {})};
  EXPECT_FALSE(slowest_of(ranks));
  EXPECT_FALSE(slowest_of(std::vector{rank_with(0, 1.0, 0.5)}));
  EXPECT_FALSE(slowest_of({}));
}

class RanksTest : public testing::RunsTest {
 protected:
  RanksTest() : id_(testing::record(store_, "train a=1 -> b=2")), uid_(head_of(store_, id_)->uid) {}
  const RunId id_;
  const std::string uid_;
};

TEST_F(RanksTest, ComeBackAsTheyWereWrittenLast) {
  EXPECT_TRUE(load_ranks(store_, id_)->empty());
  ASSERT_TRUE(*write_ranks(store_, uid_, std::vector{rank_with(1, 1, 0.5), rank_with(0, 1, {})}));
  const std::vector<RankRecord> now = {rank_with(0, 2, {}), rank_with(1, 2, 0.25)};
  ASSERT_TRUE(*write_ranks(store_, uid_, now));
  EXPECT_EQ(*load_ranks(store_, id_), now);
}

TEST_F(RanksTest, OfARunThatIsNotThereAreAnError) {
  EXPECT_FALSE(write_ranks(store_, "00000000000000ff", std::vector{rank_with(0, 1, {})}));
}

TEST_F(RanksTest, GoWithTheRun) {
  ASSERT_TRUE(*write_ranks(store_, uid_, std::vector{rank_with(0, 1, {})}));
  ASSERT_TRUE(remove_run(store_, id_));
  EXPECT_TRUE(load_ranks(store_, id_)->empty());
}

}  // namespace
}  // namespace assay::store
