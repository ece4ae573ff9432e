#include "train/schedule.h"

#include <gtest/gtest.h>

#include "train/choose_recompute.h"
#include "train/init.h"
#include "train/philox.h"

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

TEST(Philox, GivesThePublishedWords) {
  // The known answers of Random123 for Philox4x32-10.
  const auto zeros = philox(0, {0, 0});
  EXPECT_EQ(zeros, (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  const auto all = philox(ones, {ones, ones});
  EXPECT_EQ(all, (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(InitialValues, AreTheSameHoweverTheyAreCut) {
  step::Parameter p{.name = "layers.0.qkv", .rows = 8, .cols = 33, .init_std = 0.02};
  std::vector<float> whole(264);
  initial_values(p, 3, 0, whole);
  for (std::size_t first = 0; first < whole.size(); first += 7) {
    std::vector<float> part(std::min<std::size_t>(7, whole.size() - first));
    initial_values(p, 3, static_cast<std::int64_t>(first), part);
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[first + i]);
  }
  double square = 0;
  for (const float value : whole) square += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(std::sqrt(square / 264), 0.02, 0.003);
}

spec::JobSpec small_job() {
  spec::JobSpec job;
  job.model.vocab = 64;
  job.model.dim = 64;
  job.model.layers = 4;
  job.model.heads = job.model.kv_heads = 4;
  job.model.head_dim = 16;
  job.model.ffn = 128;
  job.model.context = 64;
  job.batch = {.sequence = 64, .micro_batch = 8, .accumulate = 1};
  job.train.recompute = spec::Recompute::kAuto;
  return job;
}

MemoryBudget budget(std::int64_t available) {
  return {available, [](const step::Program&) { return base::Result<std::int64_t>(100); }};
}

TEST(PlanStep, TakesTheFastestThatFits) {
  const spec::JobSpec job = small_job();
  const step::Choices choices = step::choices_of(job);
  std::int64_t available = std::int64_t{1} << 30U;
  std::int64_t last = available;
  for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap, spec::Recompute::kFfn,
                            spec::Recompute::kFull}) {
    const auto planned = plan_step(job, choices, budget(available));
    ASSERT_TRUE(planned.has_value());
    EXPECT_EQ(planned->program.choices.recompute, policy);
    EXPECT_LT(planned->plan.bytes, last);
    last = planned->plan.bytes;
    available = last + 99;  // a byte too few
  }
  const auto none = plan_step(job, choices, budget(available));
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().hint.find("batch.micro_batch="), std::string::npos) << none.error().hint;
}

}  // namespace
}  // namespace assay::train
