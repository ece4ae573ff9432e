#include "plan/scaling.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/testing/searches.h"

namespace assay::plan {
namespace {

using spec::JobSpec;
using testing::job_of;

// Eight sharded ranks of an 8B model, tight on cards of 80 GB.
JobSpec tight_job() {
  JobSpec job = job_of("llama3-8b-h200", {"cluster.extends=h100-sxm-8", "layout.fsdp=8",
                                          "batch.sequence=8192", "batch.micro_batch=1"});
  return job;
}

std::vector<ScalePoint> scaled(const JobSpec& job, Framework framework) {
  const PlanInputs inputs{.assumed = {.framework = framework}};
  const Plan plan = plan_of("job", job, inputs);
  return scaling_of(job, plan, inputs).value();
}

// What part of a step is not repeated with the micro-batches, and shrinks where more share it.
double shared_seconds(const Prediction& made) {
  const StepTime& t = made.step;
  return (t.optimizer + t.gradients).count();
}

TEST(Scaling, IsComparedWithTheSmallestNumberThatRecomputesAsTheJobDoes) {
  const auto points = scaled(tight_job(), Framework::kTorchCompiled);
  const auto own =
      std::find_if(points.begin(), points.end(), [](const auto& p) { return p.is_job; });
  ASSERT_NE(own, points.end());
  double first = 0;
  for (const ScalePoint& point : points) {
    const bool compared = point.prediction.fits && point.own_recompute;
    EXPECT_EQ(point.of_ideal > 0, compared) << point.devices;
    if (point.own_recompute) {
      EXPECT_EQ(point.prediction.work.recompute, own->prediction.work.recompute);
    } else {
      EXPECT_NE(point.prediction.work.recompute, own->prediction.work.recompute);
      EXPECT_TRUE(point.prediction.fits);
    }
    if (compared && first == 0) first = point.of_ideal;
    EXPECT_LT(point.of_ideal, 1.05) << point.devices;
  }
  EXPECT_DOUBLE_EQ(first, 1);
}

// More devices may gain what they share of the optimizer, and where cards are linked directly the
// links to more of them; nothing else.
RC_GTEST_PROP(ScalingProperty, IsIdealAtMostButForWhatIsShared, ()) {
  JobSpec job = testing::any_job();
  job.layout.dp = *rc::gen::element(1, 2);
  job.layout.fsdp = job.cluster.devices() / job.layout.dp;
  job.batch.micro_batch = *rc::gen::element(1, 2, 8);
  job.train.recompute = *rc::gen::element(spec::Recompute::kAuto, spec::Recompute::kCheap);
  const Framework framework =
      *rc::gen::element(Framework::kAssay, Framework::kTorchCompiled, Framework::kMegatronCore);
  const auto points = scaled(job, framework);
  const ScalePoint* base = nullptr;
  for (const ScalePoint& point : points) {
    if (point.of_ideal == 0) continue;
    RC_ASSERT(point.own_recompute && point.prediction.fits);
    if (base == nullptr) base = &point;
    RC_ASSERT(point.prediction.work.recompute == base->prediction.work.recompute);
    const double step = point.prediction.step.total.count();
    const auto less = [&](double before, double now) { return std::max(0.0, before - now); };
    double gained = less(shared_seconds(base->prediction), shared_seconds(point.prediction));
    if (job.cluster.link.kind == spec::LinkKind::kNvlinkMesh)
      gained += less(base->prediction.step.shards.count(), point.prediction.step.shards.count());
    RC_ASSERT(step + gained >= base->prediction.step.total.count() * (1 - 1e-6));
    RC_ASSERT(std::abs(point.of_ideal * step / base->prediction.step.total.count() - 1) < 1e-9);
  }
}

// A number of devices fits by what the plan of the same job says of it.
TEST(Scaling, FitsAsThePlanOfTheSameJobDoes) {
  JobSpec job = job_of("moe-9b-h200x32", {"batch.micro_batch=4"});
  const Plan plan = plan_of("job", job);
  const std::vector<ScalePoint> points = scaling_of(job, plan).value();
  for (const ScalePoint& point : points) {
    JobSpec same = job;
    same.layout = point.layout;
    same.cluster.nodes = std::max<std::int64_t>(1, point.devices / same.cluster.devices_per_node);
    same.cluster.max_nodes = std::max(same.cluster.max_nodes, same.cluster.nodes);
    same.train.recompute = recompute_key(point.prediction.work.recompute);
    const Plan planned = plan_of("same", same);
    ASSERT_TRUE(planned.memory);
    EXPECT_EQ(planned.memory->fits(), point.prediction.fits) << point.devices;
  }
}

}  // namespace
}  // namespace assay::plan
