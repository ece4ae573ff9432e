// What was predicted about runs, and stores from before there were plans.
#include "store/plans.h"

#include "store/cleaning.h"
#include "store/run_reader.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using ::testing::HasSubstr;
using testing::line_of;

class PlansTest : public testing::RunsTest {
 protected:
  PlansTest() : id_(testing::record(store_, "train a=1 -> b=2")), uid_(head_of(store_, id_)->uid) {}
  static PlanRecord record(double step_s) {
    return {.planned_unix_ns = 1'763'276'400'000'000'000,
            .job = "mine",
            .device = "NVIDIA H200",
            .step_s = step_s,
            .memory_bytes = 9'000'000'000,
            .plan = {{"name", "mine"}, {"step_s", step_s}}};
  }

  const RunId id_;
  const std::string uid_;
};

TEST_F(PlansTest, ComeBackAsTheyWereWritten) {
  EXPECT_FALSE(*load_plan(store_, id_));
  ASSERT_TRUE(*write_plan(store_, uid_, record(1.0 / 3)));
  const auto plan = *load_plan(store_, id_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->planned_unix_ns, 1'763'276'400'000'000'000);
  EXPECT_EQ(plan->job, "mine");
  EXPECT_EQ(plan->device, "NVIDIA H200");
  EXPECT_EQ(plan->step_s, 1.0 / 3);
  EXPECT_EQ(plan->memory_bytes, 9'000'000'000);
  EXPECT_EQ(plan->plan.at("step_s"), 1.0 / 3);
}

TEST_F(PlansTest, TheFirstOneStays) {
  ASSERT_TRUE(*write_plan(store_, uid_, record(1)));
  ASSERT_TRUE(*write_plan(store_, uid_, record(2)));
  EXPECT_EQ((*load_plan(store_, id_))->step_s, 1);
}

TEST_F(PlansTest, WhatIsNotPredictedIsNull) {
  PlanRecord plan = record(1);
  plan.step_s.reset();
  ASSERT_TRUE(*write_plan(store_, uid_, plan));
  EXPECT_FALSE((*load_plan(store_, id_))->step_s);
}

TEST_F(PlansTest, GoWithTheirRun) {
  ASSERT_TRUE(*write_plan(store_, uid_, record(1)));
  ASSERT_TRUE(remove_run(store_, id_));
  EXPECT_EQ(*store_.database().integer("SELECT count(*) FROM plan"), 0);
}

TEST_F(PlansTest, ALockedStoreIsTriedAgain) {
  Store other = *Store::open(location_, {});
  ASSERT_TRUE(other.database().set_busy_timeout(std::chrono::milliseconds(1)));
  {
    const auto lock = Transaction::begin(store_.database());
    ASSERT_TRUE(lock);
    const auto written = write_plan(other, uid_, record(1));
    ASSERT_TRUE(written) << line_of(written);
    EXPECT_FALSE(*written);
  }
  EXPECT_TRUE(*write_plan(other, uid_, record(1)));
}

TEST_F(PlansTest, AStoreFromBeforeThereWerePlansHasNone) {
  const Location old = location_in(directory("old"));
  constexpr std::size_t kVersionsWithoutPlans = 8;
  ASSERT_TRUE(Store::create(
      old, {.version = "0.1.0", .migrations = embedded_migrations().first(kVersionsWithoutPlans)}));
  auto store = Store::open(old, {});
  ASSERT_TRUE(store) << line_of(store);
  const RunId run = testing::record(*store, "train a=1 -> b=2");
  EXPECT_FALSE(*load_plan(*store, run));
  EXPECT_TRUE(*write_plan(*store, head_of(*store, run)->uid, record(1)));
  EXPECT_TRUE(*load_plan(*store, run));
}

TEST_F(PlansTest, InvalidJsonIsReported) {
  ASSERT_TRUE(*write_plan(store_, uid_, record(1)));
  ASSERT_TRUE(store_.database().exec("UPDATE plan SET plan = '{'"));
  EXPECT_THAT(line_of(load_plan(store_, id_)), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace assay::store
