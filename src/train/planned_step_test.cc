#include "train/planned_step.h"

#include <gtest/gtest.h>

namespace assay::train {
namespace {

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
