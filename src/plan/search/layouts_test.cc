// Layouts against brute force: everything that the rules allow is enumerated, and nothing else.
#include "plan/search/layouts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <tuple>

#include "plan/testing/clusters.h"
#include "plan/testing/searches.h"
#include "plan/trainer_rules.h"
#include "spec/rules.h"

namespace assay::plan {
namespace {

using spec::JobSpec;
using spec::LayoutSpec;
using spec::PipelineSchedule;

using LayoutKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                             std::int64_t, std::int64_t, std::int64_t, bool, bool>;

LayoutKey key_of(const LayoutSpec& l) {
  return {l.dp,
          l.fsdp,
          l.zero,
          l.tp,
          l.pp,
          l.pp_chunks,
          l.cp,
          l.ep,
          l.sequence_parallel,
          l.pp_schedule == PipelineSchedule::kZbH1};
}

// Shapes whose numbers have few divisors in common, so that every rule breaks now and then.
JobSpec any_small_job() {
  JobSpec job;
  job.model.vocab = 512;
  job.model.layers = *rc::gen::element(4, 6, 12);
  job.model.heads = *rc::gen::element(4, 6, 12);
  job.model.kv_heads = job.model.heads / 2;
  job.model.head_dim = 16;
  job.model.dim = job.model.heads * 16;
  job.model.ffn = *rc::gen::element(96, 128, 200);
  job.model.context = *rc::gen::element(24, 64);
  job.model.experts = *rc::gen::element(0, 0, 6, 8);
  job.model.experts_per_token = job.model.experts > 0 ? 2 : 0;
  job.batch.sequence = job.model.context;
  if (*rc::gen::inRange(0, 4) == 0) job.train.optimizer = spec::Optimizer::kMuon;
  job.cluster = testing::with_network(
      testing::one_node(*rc::gen::element(1, 4, 6, 8), spec::LinkKind::kNvswitch, 450),
      *rc::gen::element(1, 2, 3, 4), 400);
  job.cluster.max_nodes = job.cluster.nodes;
  return job;
}

template <class Visit>
void every_product(const JobSpec& job, Visit visit) {
  const std::int64_t n = job.cluster.devices();
  const std::vector<std::int64_t> parts = divisors_of(n);
  for (const auto tp : parts)
    for (const auto pp : parts)
      for (const auto cp : parts)
        for (const auto ep : parts)
          for (const auto fsdp : parts) {
            const std::int64_t inner = tp * pp * cp * ep * fsdp;
            if (n % inner != 0) continue;
            LayoutSpec l;
            l.dp = n / inner;
            l.fsdp = fsdp;
            l.tp = tp;
            l.pp = pp;
            l.cp = cp;
            l.ep = ep;
            visit(l);
          }
}

// The rules of our trainer on GPUs, that no micro-batch changes, once more.
bool has_program(const JobSpec& job, const LayoutSpec& l) {
  const bool is_moe = job.model.is_moe();
  if (is_moe && job.train.optimizer == spec::Optimizer::kMuon) return true;  // in no layout
  if (is_moe && l.cp > 1) return false;
  if (job.train.optimizer == spec::Optimizer::kMuon && (l.tp > 1 || (l.fsdp > 1 && l.zero == 3))) {
    return false;
  }
  const bool even_pieces = l.cp == 1 || job.batch.sequence % (2 * l.cp) == 0;
  return even_pieces && job.model.kv_heads % l.tp == 0 && job.model.ffn / l.tp % 8 == 0;
}

std::set<LayoutKey> by_brute_force(const JobSpec& job, std::int64_t sequences, bool ours) {
  std::set<LayoutKey> keys;
  JobSpec tried = job;
  // Of our trainer, ranks with different experts divide the rest of the state.
  const bool divides = ours && job.train.optimizer != spec::Optimizer::kMuon;
  every_product(job, [&](LayoutSpec l) {
    if (sequences % l.data_ranks() != 0 || job.cluster.devices_per_node % l.tp != 0) return;
    for (l.pp_chunks = 1; l.pp_chunks <= job.model.layers; ++l.pp_chunks) {
      if (l.pp_chunks > 1 && job.model.layers % (l.pp * l.pp_chunks) != 0) continue;
      for (const bool sp : {false, true})
        for (l.zero = l.fsdp > 1 || (l.ep > 1 && divides) ? 1 : 3; l.zero <= 3; ++l.zero)
          for (const auto schedule :
               {PipelineSchedule::k1f1b, PipelineSchedule::kInterleaved, PipelineSchedule::kZbH1}) {
            l.pp_schedule = schedule;
            l.sequence_parallel = sp;
            tried.layout = l;
            if (ours && !has_program(job, l)) continue;
            if (spec::check_layout(tried)) keys.insert(key_of(l));
          }
    }
  });
  return keys;
}

RC_GTEST_PROP(LayoutsProperty, AreAllThatTheRulesAllow, ()) {
  const JobSpec job = any_small_job();
  const std::int64_t sequences = *rc::gen::element(1, 12, 24, 64);
  const bool ours = *rc::gen::arbitrary<bool>();
  const Layouts found = layouts_of(job, sequences, ours ? Framework::kAssay : Framework::kTorch);
  std::set<LayoutKey> keys;
  for (const LayoutSpec& l : found.valid) {
    RC_ASSERT(keys.insert(key_of(l)).second);
    RC_ASSERT(l.dp * l.inner_ranks() == job.cluster.devices());
    RC_ASSERT(sequences % l.data_ranks() == 0);
  }
  RC_ASSERT(keys == by_brute_force(job, sequences, ours));
}

TEST(Layouts, HaveSchedulesThatTheSoftwareHas) {
  const JobSpec job = testing::job_of("llama3-70b-h200x32");
  const auto schedules = [&](Framework framework) {
    std::set<PipelineSchedule> found;
    for (const LayoutSpec& l : layouts_of(job, 512, framework).valid) found.insert(l.pp_schedule);
    return found;
  };
  using enum PipelineSchedule;
  const std::set<PipelineSchedule> all = {k1f1b, kInterleaved, kZbH1};
  const std::set<PipelineSchedule> of_megatron = {k1f1b, kInterleaved};
  EXPECT_EQ(schedules(Framework::kAssay), all);
  EXPECT_EQ(schedules(Framework::kTorchCompiled), all);
  EXPECT_EQ(schedules(Framework::kMegatronCore), of_megatron);
  EXPECT_EQ(schedules(Framework::kMegatronBridge), of_megatron);
  EXPECT_EQ(schedules(Framework::kZero3), std::set<PipelineSchedule>{k1f1b});
}

// Every way to make the product is either taken or counted with the reason why not.
RC_GTEST_PROP(LayoutsProperty, WhatIsNotTakenIsCounted, ()) {
  const JobSpec job = any_small_job();
  const Layouts found = layouts_of(job, *rc::gen::element(1, 12, 24, 64));
  std::int64_t ways = 0;
  every_product(job, [&](const LayoutSpec& l) { ways += l.ep == 1 || job.model.is_moe() ? 1 : 0; });
  std::set<LayoutKey> taken;
  for (LayoutSpec l : found.valid) {
    l.zero = 3;
    l.pp_chunks = 1;
    l.pp_schedule = PipelineSchedule::k1f1b;
    l.sequence_parallel = false;
    taken.insert(key_of(l));
  }
  for (const Rejection& r : found.rejected) {
    RC_ASSERT(!r.reason.empty() && r.count > 0);
    ways -= r.count;
  }
  RC_ASSERT(ways == static_cast<std::int64_t>(taken.size()));
}

RC_GTEST_PROP(LayoutsProperty, TheNearestIsValid, ()) {
  JobSpec job = any_small_job();
  job.layout.fsdp = *rc::gen::inRange<std::int64_t>(1, 9);
  job.layout.tp = *rc::gen::inRange<std::int64_t>(1, 9);
  job.layout.pp = *rc::gen::inRange<std::int64_t>(1, 9);
  job.layout.dp = *rc::gen::inRange<std::int64_t>(0, 4);
  const auto nearest = nearest_valid(job);
  RC_ASSERT(nearest.has_value() == !spec::check_layout(job).has_value());
  if (!nearest) return;
  RC_ASSERT(!nearest->broken.empty());
  job.layout = nearest->layout;
  RC_ASSERT(spec::check_layout(job).has_value());
  RC_ASSERT(job.model.is_moe() || check_trained(job).has_value());
}

JobSpec preset_job(const std::string& name) {
  return std::get<JobSpec>(spec::load(name).value().spec);
}

TEST(Layouts, AnImpossibleOneNamesItsRuleAndTheNearest) {
  JobSpec job = preset_job("llama3-70b-h200x32");
  job.layout.tp = 3;
  const auto nearest = nearest_valid(job);
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->broken,
            "layout: fsdp 8 x tp 3 = 24 ranks, but the cluster has 32 devices (8 "
            "nodes of 4)");
  EXPECT_EQ(to_text(nearest->layout), "fsdp 8 x tp 4");
  job.layout = {.dp = 0, .fsdp = 1, .pp = 32};
  EXPECT_FALSE(nearest_valid(job).has_value());  // 80 layers in 32 stages of 2 or 3
  job.model.layers = 24;
  EXPECT_EQ(nearest_valid(job)->broken,
            "layout.pp: 24 layers are too few for 32 stages of 1 chunk");
  EXPECT_EQ(to_text(nearest_valid(job)->layout), "dp 2 x pp 16");
}

// Of a schedule with too many chunks, the one with fewer; chunks need not be equal.
TEST(Layouts, TheNearestKeepsTheSchedule) {
  JobSpec job = preset_job("llama3-70b-h200x32");
  job.model.layers = 82;
  job.batch.accumulate = 16;
  job.layout = {
      .dp = 0, .pp = 8, .pp_schedule = spec::PipelineSchedule::kInterleaved, .pp_chunks = 11};
  const auto nearest = nearest_valid(job);
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->broken, "layout.pp: 82 layers are too few for 8 stages of 11 chunks");
  EXPECT_EQ(to_text(nearest->layout), "dp 4 x pp 8 of 10 chunks");
}

TEST(Layouts, ReasonsAreSentences) {
  JobSpec job = preset_job("llama3-70b-h200x32");
  job.model.layers = 24;
  const Layouts found = layouts_of(job, sequences_per_step(job));
  std::set<std::string> reasons;
  for (const Rejection& r : found.rejected) reasons.insert(r.reason);
  EXPECT_TRUE(reasons.contains("layout.pp: 24 layers are too few for 32 stages of 1 chunk"));
  EXPECT_TRUE(reasons.contains("layout.tp: groups of tp 8 would span nodes of 4 devices"));
}

TEST(Layouts, TextIsReadable) {
  LayoutSpec l{.dp = 2, .fsdp = 4, .zero = 2, .tp = 8, .sequence_parallel = true};
  EXPECT_EQ(to_text(l), "dp 2 x fsdp 4 zero 2 x tp 8 sp");
  EXPECT_EQ(to_text(LayoutSpec{.dp = 1}), "one rank");
}

}  // namespace
}  // namespace assay::plan
