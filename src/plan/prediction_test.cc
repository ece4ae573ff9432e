// Predictions of jobs: against what the step's totals say of their flops, what the trainer's
// programs say of their memory, and what runs of ours measured.
#include "plan/prediction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/testing/own_runs.h"
#include "spec/enum_names.h"
#include "spec/load.h"
#include "spec/parameters.h"
#include "step/memory_plan.h"
#include "step/recompute.h"
#include "step/totals.h"

namespace assay::plan {
namespace {

using spec::JobSpec;

constexpr double kExactly = 1e-6;
constexpr base::Bytes kOneGib(std::int64_t{1} << 30);

JobSpec predicted_job(const std::string& preset, const std::vector<std::string>& set = {}) {
  auto loaded = spec::load(preset, {.overrides = set});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return std::get<JobSpec>(loaded->spec);
}

// Where nothing but flops takes time: one multiprocessor, so that no wave is short, and no
// efficiency below 1. Then the time of products and attention is their flops over the rate.
Constants only_flops() {
  Constants c;
  c.gemm_eff = c.fp8_eff = c.attn_eff = c.attn_bwd = c.own_gemm = c.own_fp8 = c.own_attn = 1;
  c.pow_ref = 1e-9;
  c.mem_eff = c.coll_eff = c.net_eff = c.a2a_eff = 1;
  return c;
}

double priced_flops(const JobSpec& job) {
  Work work = work_of(job, {.imbalance = 1}).value();
  work.recompute = RecomputeKind::kNone;
  constexpr base::FlopsPerSecond kRate(1e12);
  work.card.bf16_flops = work.card.fp8_flops = kRate;
  work.card.multiprocessors = 1;
  work.card.memory_rate = base::BytesPerSecond(1e40);
  const StepTime t = step_time(work, only_flops());
  EXPECT_EQ(t.clock, 1);
  return (t.products + t.attention + t.head).count() * kRate.count();
}

// Of the last stage of a pipeline, whose rank has a head: that is the rank that the model prices.
double counted_flops(const JobSpec& job) {
  const spec::LayoutSpec& l = job.layout;
  step::Choices choices{.numerics = step::numerics_of(spec::Precision::kBf16),
                        .sequence = job.batch.sequence,
                        .micro_batch = job.batch.micro_batch};
  choices.layout.tensor.ranks = l.tp;
  choices.layout.context.ranks = l.cp;
  choices.layout.sequence_parallel = l.sequence_parallel;
  const step::MicroTotals totals = step::micro_totals(job.model, choices);
  const auto flops_of = [&](const step::Totals& of_one) {
    double flops = 0;
    for (const step::CountedOp& op : of_one.ops) flops += op.flops * static_cast<double>(op.count);
    return flops;
  };
  const auto mixtures = static_cast<double>(job.model.moe_layers() / l.pp);
  const auto dense = static_cast<double>(job.model.layers / l.pp) - mixtures;
  return static_cast<double>(job.batch.accumulate) *
         (dense * flops_of(totals.dense) + mixtures * flops_of(totals.mixture) +
          flops_of(totals.last));
}

struct FlopsCase {
  const char* preset;
  std::vector<std::string> set;
};

class PricedFlops : public ::testing::TestWithParam<FlopsCase> {};

TEST_P(PricedFlops, AreThoseOfTheStep) {
  const JobSpec job = predicted_job(GetParam().preset, GetParam().set);
  const double counted = counted_flops(job);
  EXPECT_NEAR(priced_flops(job), counted, kExactly * counted);
}

// Shapes whose cuts fill whole tiles of 128 x 256: the model prices tiles, totals count elements.
INSTANTIATE_TEST_SUITE_P(
    Jobs, PricedFlops,
    ::testing::Values(
        FlopsCase{"llama3-8b-h200", {}},
        FlopsCase{"llama3-13b-h200x32", {"model.vocab=131072", "model.ffn=14336"}},
        FlopsCase{"llama3-70b-h200x32", {"model.vocab=131072"}},
        FlopsCase{"llama3-70b-h200x32", {"model.vocab=131072", "layout.sequence_parallel=true"}},
        FlopsCase{"llama3-70b-h200x32", {"model.vocab=131072", "layout.fsdp=2", "layout.pp=4"}},
        FlopsCase{"llama3-70b-h200x32",
                  {"model.vocab=131072", "layout.fsdp=1", "layout.cp=4", "layout.dp=2"}}));

// Rows of experts fill half of their last tile: of as many rows as there are here, less than 2 %.
TEST(PricedFlops, OfMixturesAreThoseOfTheStepAndOfHalfATile) {
  const std::vector<std::string> large = {"model.vocab=131072", "batch.micro_batch=16"};
  for (const char* set : {"layout={ep=2,tp=4,fsdp=4}", "layout={ep=8,fsdp=4}", "layout={fsdp=32}",
                          "layout={tp=4,fsdp=8,sequence_parallel=true}", "model.moe_every=2"}) {
    SCOPED_TRACE(set);
    std::vector<std::string> all = large;
    all.emplace_back(set);
    const JobSpec job = predicted_job("moe-9b-h200x32", all);
    const double counted = counted_flops(job);
    EXPECT_GT(priced_flops(job), counted);
    EXPECT_LT(priced_flops(job), 1.02 * counted);
  }
}

// A tile that is not full costs what a full one does.
TEST(PricedFlops, AreNeverFewerThanCounted) {
  for (const char* preset : {"llama3-13b-h200x32", "llama3-70b-h200x32"}) {
    const JobSpec job = predicted_job(preset);
    EXPECT_GE(priced_flops(job), counted_flops(job)) << preset;
    EXPECT_LE(priced_flops(job), 1.02 * counted_flops(job)) << preset;
  }
}

// Attention of nanochat is windowed in three layers of four, which programs do not know: with
// windows of half a sequence it has 13/16 of the flops. Its products are the step's.
TEST(PricedFlops, OfNanochatAreTheStepsButForWindows) {
  JobSpec job = predicted_job("nanochat-d26-h100", {"model.extends=nanochat-d24"});
  job.train.precision = spec::Precision::kBf16;
  Work work = work_of(job).value();
  EXPECT_EQ(work.shape.window, 1024);
  EXPECT_EQ(work.shape.windowed_share, 0.75);
  const auto tokens =
      static_cast<double>(job.batch.sequence * job.batch.micro_batch * job.batch.accumulate);
  const double attention = 7.0 * tokens * static_cast<double>(job.batch.sequence) *
                           static_cast<double>(job.model.q_dim() * job.model.layers);
  // Mean keys: S/2 in a quarter of the layers, W - W^2/2S = 3/8 S in the others.
  const double unseen = attention * (1 - (0.25 * 0.5 + 0.75 * 0.375) / 0.5);
  const double counted = counted_flops(job);
  EXPECT_NEAR(priced_flops(job), counted - unseen, kExactly * counted);
}

// What is counted for the trainer against the places that its programs give to buffers.
TEST(TrainerMemory, IsThatOfItsPrograms) {
  for (const char* preset : {"llama3-8b", "gpt2-124m", "llama3-13b"}) {
    for (const std::int64_t micro_batch : {1, 4}) {
      for (const char* recompute : {"none", "cheap", "ffn", "full"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", preset, micro_batch, recompute));
        JobSpec job = predicted_job("llama3-8b-h200",
                                    {fmt::format("model.extends={}", preset), "batch.sequence=1024",
                                     fmt::format("batch.micro_batch={}", micro_batch),
                                     fmt::format("train.recompute={}", recompute)});
        const auto program = step::build(job.model, step::choices_of(job));
        ASSERT_TRUE(program.has_value());
        const base::Bytes planned(step::plan_memory(*program).bytes);
        const MemoryNeed need = predict(job).value().memory;
        constexpr base::Bytes kContext = kOneGib;
        EXPECT_NEAR(need.total() / planned, 1 + kContext / planned, 0.03);
      }
    }
  }
}

// The largest stage of a pipeline, whichever that is.
TEST(TrainerMemory, OfPipelinesIsThatOfTheirPrograms) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    for (const char* recompute : {"none", "cheap", "full"}) {
      SCOPED_TRACE(fmt::format("{} {}", schedule, recompute));
      JobSpec job = predicted_job(
          "llama3-8b-h200",
          {"cluster.extends=h200-4-ib", "layout.pp=4", "batch.sequence=1024", "batch.micro_batch=1",
           "batch.accumulate=8", fmt::format("layout.pp_schedule={}", schedule),
           fmt::format("train.recompute={}", recompute)});
      base::Bytes planned(0);
      for (std::int64_t rank = 0; rank < 4; ++rank) {
        step::Choices choices = step::choices_of(job);
        choices.layout = *step::layout_of(job.layout, rank);
        const auto program = step::build(job.model, choices);
        ASSERT_TRUE(program.has_value());
        planned = std::max(planned, base::Bytes(step::plan_memory(*program).bytes));
      }
      const MemoryNeed need = predict(job).value().memory;
      EXPECT_NEAR(need.total() / planned, 1 + kOneGib / planned, 0.03);
    }
  }
}

TEST(Prediction, OfOurTrainerIsWhatItMeasured) {
  for (const testing::OwnRun& run : testing::own_runs()) {
    SCOPED_TRACE(fmt::format("{} {}", run.job, fmt::join(run.set, " ")));
    const JobSpec job = predicted_job(run.job, run.set);
    const Prediction p = predict(job).value();
    EXPECT_NEAR(p.step.total.count() / run.seconds, 1, 0.03);
    // Without the workspace of libraries, which depends on their choice of algorithms.
    const double held = (p.memory.total() - p.memory.workspace) / kOneGib;
    EXPECT_NEAR(held / run.gib, 1, 0.05);
    EXPECT_TRUE(p.fits);
  }
}

// The model's memory says what the run's script did: 16 sequences twice, for 32 do not fit.
TEST(Prediction, OfNanochatOnEightH100) {
  const JobSpec at_once =
      predicted_job("nanochat-d26-h100", {"batch.micro_batch=32", "batch.accumulate=1"});
  EXPECT_FALSE(predict(at_once)->fits);
  const Prediction p = predict(predicted_job("nanochat-d26-h100")).value();
  EXPECT_TRUE(p.fits);
  EXPECT_NEAR(p.step.total.count() / 0.7019, 1, 0.05);
  EXPECT_EQ(p.tokens_per_step, 524'288);
}

// The fastest that fits, and what does not fit says so.
TEST(Prediction, RecomputesAsMuchAsMemoryAsks) {
  const auto recompute = [](const std::string& memory) {
    return predict(predicted_job("llama3-8b-h200",
                                 {"train.recompute=auto", "cluster.device.memory=" + memory}))
        .value();
  };
  EXPECT_EQ(recompute("160 GiB").work.recompute, RecomputeKind::kNone);
  EXPECT_EQ(recompute("141 GiB").work.recompute, RecomputeKind::kCheap);
  EXPECT_EQ(recompute("100 GiB").work.recompute, RecomputeKind::kFfn);
  EXPECT_EQ(recompute("90 GiB").work.recompute, RecomputeKind::kFull);
  EXPECT_TRUE(recompute("90 GiB").fits);
  EXPECT_FALSE(recompute("80 GiB").fits);
}

// So the first that fits is the fastest, up to rounding where waiting hides all that is recomputed.
TEST(Prediction, EachRecomputationTakesLongerThanTheOneBefore) {
  for (const char* preset : {"llama3-13b-h200x32", "moe-9b-h200x32"}) {
    for (const Framework framework : {Framework::kAssay, Framework::kTorch, Framework::kKempner,
                                      Framework::kMegatronCore, Framework::kZero3}) {
      Work work = work_of(predicted_job(preset), {.framework = framework}).value();
      double last = 0;
      for (const RecomputeKind kind : recomputations_of(framework)) {
        work.recompute = kind;
        const double seconds = step_seconds(work, shipped_constants()).count();
        EXPECT_GE(seconds, last * (1 - 1e-12)) << preset << to_text(framework) << to_text(kind);
        last = seconds;
      }
    }
  }
}

TEST(Prediction, TheTrainersRecomputationsAreTheStepsOwn) {
  std::vector<std::string> priced;
  std::vector<std::string> executed;
  for (const auto kind : recomputations_of(Framework::kAssay)) priced.emplace_back(to_text(kind));
  for (const auto policy : step::kRecomputePolicies) executed.emplace_back(spec::to_text(policy));
  EXPECT_EQ(priced, executed);
}

TEST(Prediction, ModulesGatherMoreOftenAndHoldLess) {
  const std::vector<std::string> sharded = {"layout.fsdp=8", "layout.tp=4"};
  const Prediction block = predict(predicted_job("llama3-13b-h200x32", sharded)).value();
  const Prediction module =
      predict(predicted_job("llama3-13b-h200x32",
                            {"layout.fsdp=8", "layout.tp=4", "layout.unit=module"}))
          .value();
  EXPECT_GT(module.step.shards, block.step.shards);
  EXPECT_LT(module.memory.gathered, block.memory.gathered);
}

// A capacity is paid for whether tokens come or not: in products, in what is sent, in memory.
TEST(Prediction, CapacityOfExpertsIsPaidFor) {
  const auto by_others = [](const std::vector<std::string>& set) {
    return predict(predicted_job("moe-9b-h200x32", set), {.framework = Framework::kMegatronCore})
        .value();
  };
  const Prediction dropless = by_others({});
  const Prediction even = by_others({"model.capacity=1"});
  const Prediction half_more = by_others({"model.capacity=1.5"});
  EXPECT_EQ(even.step.total, dropless.step.total);
  EXPECT_GT(half_more.step.products, even.step.products);
  EXPECT_GT(half_more.step.experts, even.step.experts);
  EXPECT_GT(half_more.memory.total(), even.memory.total());
}

// Our trainer computes what comes, up to a capacity.
TEST(Prediction, OurExpertsComputeWhatComes) {
  const auto ours = [](const std::vector<std::string>& set, double imbalance) {
    return predict(predicted_job("moe-9b-h200x32", set), {.imbalance = imbalance}).value();
  };
  const Prediction even = ours({}, 1);
  EXPECT_EQ(ours({"model.capacity=1"}, 3).step.total, even.step.total);
  EXPECT_EQ(ours({"model.capacity=1.5"}, 1).step.total, even.step.total);
  EXPECT_EQ(ours({"model.capacity=1.5"}, 3).step.total, ours({}, 1.5).step.total);
  EXPECT_LT(ours({"model.capacity=1.5"}, 1).memory.total(), even.memory.total());
  // One expert on each of two ranks has half of the rows of four: 4 of 8 experts are on a rank.
  EXPECT_DOUBLE_EQ(ours({}, 1).work.degrees.expert_load, 1);
  EXPECT_DOUBLE_EQ(ours({}, 8).work.degrees.expert_load, 2);
}

// All ranks wait for the rank that has the most loaded expert; one that has all experts has all
// rows.
TEST(Prediction, TheSlowestRankIsWaitedFor) {
  for (const Framework framework : {Framework::kAssay, Framework::kMegatronCore}) {
    for (const char* layout : {"layout={ep=8,fsdp=4}", "layout={ep=8,dp=4}", "layout={fsdp=32}"}) {
      SCOPED_TRACE(fmt::format("{} {}", to_text(framework), layout));
      const JobSpec job = predicted_job("moe-9b-h200x32", {layout});
      StepTime last = predict(job, {.framework = framework, .imbalance = 1})->step;
      for (const double imbalance : {1.1, 1.5, 3.0}) {
        const StepTime now = predict(job, {.framework = framework, .imbalance = imbalance})->step;
        if (job.layout.ep == 1) {
          EXPECT_EQ(now.total, last.total);
        } else {
          EXPECT_GT(now.products, last.products);
          EXPECT_GT(now.experts, last.experts);
          EXPECT_GT(now.total, last.total);
        }
        last = now;
      }
    }
  }
}

TEST(Prediction, UtilisationIsByBothDefinitions) {
  const JobSpec job = predicted_job("llama3-8b-h200");
  const Prediction p = predict(job).value();
  const spec::FlopsPerToken flops = spec::flops_per_token(job.model, job.batch.sequence);
  EXPECT_DOUBLE_EQ(p.mfu, 32'768 / p.step.total.count() * flops.without_embedding / 989.4e12);
  EXPECT_DOUBLE_EQ(p.mfu_with_embedding / p.mfu, flops.with_embedding / flops.without_embedding);
}

// As measured of our trainer (bench/results/train.md, moe.md).
TEST(Prediction, Fp8IsFasterInOurTrainer) {
  for (const std::string name : {"llama3-8b-h200", "moe-9b-h200"}) {
    for (const std::string recompute : {"cheap", "full"}) {
      const auto step = [&](const std::string& precision) {
        return predict(predicted_job(
                           name, {"train.precision=" + precision, "train.recompute=" + recompute}))
            ->step.total;
      };
      EXPECT_LT(step("fp8"), step("bf16")) << name;
    }
  }
}

}  // namespace
}  // namespace assay::plan
