#include "train/step_settings.h"

#include <gtest/gtest.h>

namespace assay::train {
namespace {

spec::TrainSpec with(spec::Schedule schedule) {
  spec::TrainSpec train;
  train.schedule = schedule;
  train.warmup_steps = 10;
  train.final_fraction = 0.1;
  return train;
}

TEST(Schedule, RisesToOneAndEndsAtTheFinalFraction) {
  for (const auto kind : {spec::Schedule::kCosine, spec::Schedule::kLinear, spec::Schedule::kWsd}) {
    const spec::TrainSpec train = with(kind);
    EXPECT_DOUBLE_EQ(schedule(train, 1, 100), 0.1);
    EXPECT_DOUBLE_EQ(schedule(train, 10, 100), 1.0);
    EXPECT_NEAR(schedule(train, 100, 100), 0.1, 1e-12);
    for (std::int64_t step = 11; step <= 100; ++step) {
      EXPECT_LE(schedule(train, step, 100), schedule(train, step - 1, 100));
    }
  }
  EXPECT_DOUBLE_EQ(schedule(with(spec::Schedule::kConstant), 100, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule(with(spec::Schedule::kWsd), 80, 100), 1.0);
  EXPECT_NEAR(schedule(with(spec::Schedule::kWsd), 90, 100), 0.55, 1e-12);
}

}  // namespace
}  // namespace assay::train
