// What a search offers is what our trainer executes: every offer is built.
#include <algorithm>

#include "plan/rank_footprints.h"
#include "plan/testing/searches.h"
#include "spec/rules.h"
#include "step/rules.h"

namespace assay::plan {
namespace {

using spec::JobSpec;

// A small dense model whose numbers have few divisors in common, and so few sequences that they
// alone do not occupy the devices.
JobSpec any_executed_job() {
  JobSpec job = testing::job_of("llama3-13b-h200x32");
  spec::ModelSpec& m = job.model;
  m.layers = *rc::gen::element(3, 6, 8, 12);
  m.heads = *rc::gen::element(4, 6, 8, 12);
  m.kv_heads = m.heads / *rc::gen::element(1, 2, 4);
  if (m.kv_heads * 2 > m.heads || m.heads % m.kv_heads != 0) m.kv_heads = m.heads;
  m.head_dim = *rc::gen::element(16, 24);
  m.dim = m.heads * m.head_dim;
  m.ffn = *rc::gen::element(96, 128, 200, 528);
  m.vocab = *rc::gen::element(500, 4096);
  m.tied = *rc::gen::arbitrary<bool>();
  m.context = job.batch.sequence = *rc::gen::element(24, 30, 64, 100);
  job.batch.micro_batch = 1;
  job.batch.accumulate = *rc::gen::element(1, 2, 3, 6, 8, 12);
  job.train.steps = 1000;
  if (*rc::gen::inRange(0, 6) == 0) job.train.optimizer = spec::Optimizer::kMuon;
  if (*rc::gen::inRange(0, 4) == 0) job.train.precision = spec::Precision::kFp8;
  job.cluster.devices_per_node = *rc::gen::element(2, 4, 6, 8);
  job.cluster.nodes = *rc::gen::element(1, 2, 3, 4);
  job.cluster.max_nodes = job.cluster.nodes;
  job.layout = {.ranks = job.cluster.devices(), .dp = 1, .cp = job.cluster.devices()};
  return job;
}

JobSpec run_as(const JobSpec& job, std::int64_t nodes, const spec::LayoutSpec& layout,
               const spec::BatchSpec& batch) {
  JobSpec run = job;
  run.cluster.nodes = nodes;
  run.layout = layout;
  run.batch = batch;
  return run;
}

bool is_trained(const JobSpec& run) {
  step::Choices choices = step::choices_of(run);
  choices.layout = step::layout_of(run.layout, 0).value();
  return step::check(run.model, choices) && step::check_for_gpus(run.model, choices);
}

// In some layout, on one rank if in any.
bool is_trained_at_all(JobSpec job) {
  job.layout = {.dp = 1};
  job.batch.micro_batch = 16;
  return is_trained(job);
}

RC_GTEST_PROP(SearchProperty, EveryCandidateIsExecuted, ()) {
  const JobSpec job = any_executed_job();
  SearchChoices choices;
  choices.sampling.trials = 10;
  if (*rc::gen::arbitrary<bool>()) {
    choices.limits.min_devices = job.cluster.devices() / *rc::gen::element(1, 2);
  }
  const auto found = search(job, testing::machines_of(job), choices);
  RC_ASSERT(found.has_value());
  RC_CLASSIFY(found->candidates.empty(), "nothing is offered");
  if (!is_trained_at_all(job)) return;
  for (const Candidate& c : found->candidates) {
    const JobSpec run = run_as(job, c.nodes, c.choice.layout, c.choice.batch);
    RC_ASSERT(spec::check_layout(run).has_value());
    for (const std::int64_t rank : {std::int64_t{0}, c.devices - 1}) {
      step::Choices own = step::choices_of(run);
      own.recompute = spec::Recompute::kNone;
      own.layout = step::layout_of(run.layout, rank).value();
      const auto program = step::build(run.model, own);
      if (!program) RC_FAIL(program.error().line());
      RC_ASSERT(step::check_for_gpus(run.model, own).has_value());
    }
    const auto footprints = rank_footprints(run, device_of(run));
    if (!footprints) RC_FAIL(footprints.error().line());
  }
}

// And nothing that is executed is left out: all layouts by spec's rules, with every micro-batch,
// by the trainer's.
RC_GTEST_PROP(SearchProperty, EverythingExecutedIsConsidered, ()) {
  JobSpec job = any_executed_job();
  job.train.optimizer = spec::Optimizer::kAdamw;
  RC_PRE(is_trained_at_all(job));
  const std::int64_t sequences = sequences_per_step(job);
  const Work work = work_of(job).value();
  const FastestLayout found = fastest_layout(job, work, sequences, work.card.memory, {});
  std::int64_t executed = 0;
  // Of other software the search knows spec's rules alone.
  for (const spec::LayoutSpec& layout : layouts_of(job, sequences, Framework::kTorch).valid) {
    const std::int64_t per_rank = sequences / layout.data_ranks();
    for (const std::int64_t micro_batch : divisors_of(per_rank)) {
      const spec::BatchSpec batch{job.batch.sequence, micro_batch, per_rank / micro_batch};
      executed += is_trained(run_as(job, job.cluster.nodes, layout, batch)) ? 1 : 0;
    }
  }
  constexpr std::int64_t kRecomputations = 4;
  RC_ASSERT(found.considered == kRecomputations * executed);
}

// Jobs of other software are searched by spec's rules alone.
TEST(Search, OnlyWhatOurTrainerRunsObeysItsRules) {
  const auto most_tp = [](const Layouts& layouts) {
    std::int64_t most = 0;
    for (const spec::LayoutSpec& l : layouts.valid) most = std::max(most, l.tp);
    return most;
  };
  JobSpec job = testing::job_of("llama3-13b-h200x32");
  job.model.kv_heads = 2;
  EXPECT_EQ(most_tp(layouts_of(job, 64)), 2);
  EXPECT_EQ(most_tp(layouts_of(job, 64, Framework::kMegatronCore)), 4);
  const Layouts ours = layouts_of(job, 64);
  const bool told = std::any_of(ours.rejected.begin(), ours.rejected.end(), [](const auto& r) {
    return r.reason == "layout.tp: model.kv_heads 2 cannot be divided by 4 ranks";
  });
  EXPECT_TRUE(told);
  JobSpec mixture = testing::job_of("moe-9b-h200x32");
  mixture.model.kv_heads = 2;
  EXPECT_EQ(most_tp(layouts_of(mixture, 64)), 2);
  EXPECT_EQ(most_tp(layouts_of(mixture, 64, Framework::kMegatronCore)), 4);
  const Layouts together = layouts_of(mixture, 64);
  for (const spec::LayoutSpec& l : together.valid) EXPECT_EQ(l.cp, 1);
  const auto has = [&](std::int64_t ep, std::int64_t fsdp, std::int64_t zero) {
    return std::ranges::any_of(together.valid, [&](const spec::LayoutSpec& l) {
      return l.ep == ep && l.fsdp == fsdp && l.zero == zero;
    });
  };
  EXPECT_TRUE(has(8, 4, 3));
  EXPECT_TRUE(has(8, 1, 1));  // ranks with different experts divide the rest of the state
  EXPECT_FALSE(has(1, 1, 1));
  EXPECT_FALSE(has(16, 1, 3));  // of 8 experts
  // Muon's whole matrices.
  job.train.optimizer = spec::Optimizer::kMuon;
  for (const spec::LayoutSpec& l : layouts_of(job, 64).valid) {
    EXPECT_TRUE(l.tp == 1 && (l.fsdp == 1 || l.zero < 3)) << to_text(l);
  }
}

TEST(Search, CountsLayoutsThatNoMicroBatchSuits) {
  JobSpec job = testing::job_of("llama3-13b-h200x32");
  const Work work = work_of(job).value();
  const FastestLayout found = fastest_layout(job, work, 4, work.card.memory, {});
  const auto told = std::find_if(found.rejected.begin(), found.rejected.end(), [](const auto& r) {
    return r.reason ==
           "batch: no micro-batch of 4 sequences per step suits the pipeline stages and ranks";
  });
  ASSERT_NE(told, found.rejected.end());  // more interleaved stages than micro-batches
  EXPECT_GT(told->count, 0);
}

}  // namespace
}  // namespace assay::plan
