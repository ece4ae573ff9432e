// What steps of our trainer are priced by (bytes exchanged, bytes added up, flops, memory) against
// the programs that it executes, for models and layouts drawn at random.
#include "plan/model/folded_exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/model/trainer_step.h"
#include "plan/plan.h"
#include "plan/testing/parameter_traffic.h"
#include "plan/testing/searches.h"
#include "step/testing/drawn_jobs.h"

namespace assay::plan {
namespace {

// Of a size at which alignment does not count, on as many H200 as the layout has ranks.
spec::JobSpec large_job() {
  spec::JobSpec job = testing::job_of("llama3-8b-h200");
  spec::ModelSpec& m = job.model;
  m.layers = *rc::gen::inRange(32, 81);
  m.dim = *rc::gen::element(2048, 4096);
  m.heads = m.dim / 128;
  m.head_dim = 128;
  m.kv_heads = 8;
  m.ffn = 3 * m.dim;
  m.vocab = *rc::gen::element(32'000, 128'256);
  m.tied = *rc::gen::arbitrary<bool>();
  job.layout = step::testing::drawn_layout(m);
  job.layout.fsdp *= *rc::gen::element(1, 8);
  job.batch.sequence = 4096;
  job.batch.micro_batch = *rc::gen::inRange(1, 3);
  job.batch.accumulate = *rc::gen::inRange(1, 13);
  if (job.layout.pp_chunks > 1) job.batch.accumulate = job.layout.pp * *rc::gen::inRange(1, 4);
  job.train.precision = spec::Precision::kBf16;
  job.train.recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kCheap,
                                          spec::Recompute::kFfn, spec::Recompute::kFull);
  job.layout.ranks = job.layout.dp * job.layout.inner_ranks();
  job.cluster = testing::job_of("llama3-70b-h200x32").cluster;
  job.cluster.devices_per_node = *job.layout.ranks;
  job.cluster.nodes = job.cluster.max_nodes = 1;
  return job;
}

double about_parameters(const step::Footprint& footprint, step::OpKind kind) {
  double sum = 0;
  for (const step::CountedExchange& one : footprint.exchanges) {
    const bool counted =
        one.what == step::Exchanged::kWeights || one.what == step::Exchanged::kGradients;
    // What tensor-parallel ranks add up of norms is too little to be priced.
    if (counted && one.kind == kind && one.axis != step::Axis::kTensor)
      sum += static_cast<double>(one.calls * one.bytes());
  }
  return sum;
}

double most_of(const RankFootprints& found, const auto& figure) {
  double most = 0;
  for (const step::Footprint& one : found.ranks) most = std::max(most, figure(one));
  return most;
}

void near(double priced, double counted, double tolerance, const char* what) {
  if (counted == 0 && priced == 0) return;
  const double ratio = priced / counted;
  if (!(std::abs(ratio - 1) <= tolerance)) {
    RC_FAIL(fmt::format("{}: priced {:.6g}, the program has {:.6g} ({:+.2f} %)", what, priced,
                        counted, 100 * (ratio - 1)));
  }
}

// A mixture, also with its experts spread, on one stage.
spec::JobSpec large_mixture() {
  spec::JobSpec job = large_job();
  job.model.layers = *rc::gen::inRange(8, 33);
  job.model.experts = 8;
  job.model.experts_per_token = *rc::gen::inRange(1, 5);
  job.model.shared_ffn = *rc::gen::element<std::int64_t>(0, job.model.dim);
  job.layout.cp = job.layout.pp = job.layout.pp_chunks = 1;
  job.layout.pp_schedule = spec::PipelineSchedule::k1f1b;
  job.layout.unit = spec::ShardUnit::kBlock;
  job.layout.ep = *rc::gen::element(1, 2, 4, 8);
  job.layout.ranks = job.layout.dp * job.layout.inner_ranks();
  job.cluster.devices_per_node = *job.layout.ranks;
  return job;
}

// `filled`: what units of norms alone are filled up to, of all that is exchanged.
void check_exchange(const spec::JobSpec& job, double filled) {
  const auto found = rank_footprints(job, device_of(job));
  RC_PRE(found.has_value());
  const Work work = work_of(job).value();
  const testing::ParameterTraffic priced = testing::parameter_traffic(work);
  const auto of_kind = [&](step::OpKind kind) {
    return most_of(*found, [&](const step::Footprint& one) { return about_parameters(one, kind); });
  };
  // Up to the final norm, and for gathers what is left from other chunks.
  near(priced.all_to_all, of_kind(step::OpKind::kAllToAll), filled, "all-to-all");
  near(priced.all_gather, of_kind(step::OpKind::kAllGather), job.layout.pp_chunks > 1 ? 0.25 : 0.05,
       "all-gather");
  if (folded_bytes(work) == 0) return;  // norms of tensor-parallel ranks at most
  // But for these.
  near(folded_bytes(work),
       most_of(*found, [](const step::Footprint& one) { return one.folded_bytes; }), 0.04,
       "added up");
  RC_ASSERT(priced.reduce_scatter == 0 && priced.all_reduce == 0);
}

RC_GTEST_PROP(FoldedExchange, IsThatOfThePrograms, ()) {
  check_exchange(large_job(), 0.005);
}

RC_GTEST_PROP(FoldedExchange, OfMixturesIsThatOfThePrograms, ()) {
  check_exchange(large_mixture(), 0.02);
}

// Rows on their way to experts and back, and the numbers that go with them: every message.
RC_GTEST_PROP(FoldedExchange, RowsOfExpertsAreThoseOfThePrograms, ()) {
  const spec::JobSpec job = large_mixture();
  const auto found = rank_footprints(job, device_of(job));
  RC_PRE(found.has_value() && job.layout.ep > 1);
  double counted = 0;
  for (const step::CountedExchange& one : found->busiest().exchanges) {
    if (one.axis == step::Axis::kExpert) counted += static_cast<double>(one.calls * one.bytes());
  }
  Work work = work_of(job).value();
  const TrainerStep& step = *trainer_step(work);
  double priced = 0;
  for (const ExpertMoment& moment : step.exchange) {
    if (moment.what == ExpertMoment::What::kIssue) {
      priced += step.messages[moment.message].bytes;
    }
  }
  // But for counts and weights of the last layer, which chooses experts once.
  near(priced * work.shape.layers * work.batch.micros, counted, 1e-3, "rows of experts");
}

RC_GTEST_PROP(FoldedExchange, MemoryIsThatOfThePrograms, ()) {
  const spec::JobSpec job = large_job();
  const RankDevice device = device_of(job);
  const auto found = rank_footprints(job, device);
  RC_PRE(found.has_value());
  const Work work = work_of(job).value();
  const MemoryNeed counted = memory_of(found->largest(), device.extra);
  const MemoryNeed need = memory_need(work, shipped_memory_constants());
  RC_CLASSIFY(std::abs(need.total() / counted.total() - 1) > 0.1, "off by more than 10 %");
  near(static_cast<double>(need.total().count()), static_cast<double>(counted.total().count()),
       job.layout.pp_chunks > 1 ? 0.3 : 0.15, "memory");
}

RC_GTEST_PROP(FoldedExchange, MemoryOfMixturesIsThatOfThePrograms, ()) {
  spec::JobSpec job = large_mixture();
  if (*rc::gen::arbitrary<bool>()) {  // in stages; zero bubble keeps rows of every layer
    job.layout.pp = *rc::gen::element(2, 3, 4);
    job.layout.pp_schedule =
        *rc::gen::element(spec::PipelineSchedule::k1f1b, spec::PipelineSchedule::kZbH1);
    job.batch.accumulate = *rc::gen::inRange(1, 13);
    job.layout.ranks = job.layout.dp * job.layout.inner_ranks();
    job.cluster.devices_per_node = *job.layout.ranks;
  }
  const RankDevice device = device_of(job);
  const auto found = rank_footprints(job, device);
  RC_PRE(found.has_value());
  const Work work = work_of(job).value();
  near(static_cast<double>(memory_need(work, shipped_memory_constants()).total().count()),
       static_cast<double>(memory_of(found->largest(), device.extra).total().count()),
       job.layout.pp > 1 ? 0.4 : 0.25, "memory");
}

// Of experts of the same width, of which a token uses as many: in closed form and in the programs.
RC_GTEST_PROP(FoldedExchange, MoreExpertsNeverHoldLess, ()) {
  const spec::JobSpec few = large_mixture();
  spec::JobSpec many = few;
  many.model.experts = few.model.experts * *rc::gen::element(2, 3, 4);
  const auto closed = [](const spec::JobSpec& job) {
    return memory_need(work_of(job).value(), shipped_memory_constants()).total();
  };
  RC_ASSERT(closed(few) <= closed(many));
  const auto counted_few = counted_memory(few);
  const auto counted_many = counted_memory(many);
  RC_PRE(counted_few && counted_many);
  RC_ASSERT(counted_few->total() <= counted_many->total());
}

}  // namespace
}  // namespace assay::plan
