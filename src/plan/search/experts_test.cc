// Layouts that spread experts over ranks, as a search prices them: no step is faster than the bytes
// that its programs send take on the links of the machines.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "plan/rank_footprints.h"
#include "plan/search/layouts.h"
#include "plan/testing/searches.h"

namespace assay::plan {
namespace {

// Small enough to be unrolled, large enough for rows to matter; links from slow to fast.
spec::JobSpec any_mixture() {
  spec::JobSpec job = testing::job_of("moe-9b-h200x32");
  job.model.layers = *rc::gen::element(4, 6);
  job.model.experts = *rc::gen::element(8, 16);
  job.model.experts_per_token = *rc::gen::inRange(1, 5);
  job.model.expert_ffn = *rc::gen::element(512, 2048, 7168);
  job.model.shared_ffn = *rc::gen::element(0, 2048);
  job.model.vocab = 32'000;
  job.batch.sequence = *rc::gen::element(1024, 4096);
  job.batch.micro_batch = 1;
  job.batch.accumulate = *rc::gen::element(1, 2, 4);
  job.train.recompute = *rc::gen::element(spec::Recompute::kNone, spec::Recompute::kFull);
  job.cluster.nodes = job.cluster.max_nodes = *rc::gen::element(1, 2, 4);
  job.cluster.link.bandwidth = base::BytesPerSecond(*rc::gen::element(50e9, 450e9));
  job.cluster.network.bandwidth = base::BytesPerSecond(*rc::gen::element(1e9, 25e9, 400e9));
  job.layout = {};
  return job;
}

// What one of `group`'s exchanges of `bytes` needs, of the links at their nominal rates: each rank
// sends (or, of what is gathered, its node receives once) what is not there.
struct Needed {
  double network = 0;  // bytes of a node
  double inside = 0;   // of a device
};

Needed needed_by(const step::CountedExchange& one, const step::Layout& layout,
                 std::int64_t per_node) {
  const auto bytes = static_cast<double>(one.calls * one.bytes());
  const std::vector<std::int64_t> members = layout.members(one.axis);
  const std::int64_t node = layout.rank() / per_node;
  double here = 0;
  for (const std::int64_t rank : members) here += rank / per_node == node ? 1 : 0;
  const auto all = static_cast<double>(members.size());
  const auto devices = static_cast<double>(per_node);
  switch (one.kind) {
    case step::OpKind::kAllToAll:
    case step::OpKind::kExchangeRows:
      return {devices * bytes * (all - here) / all, bytes * (here - 1) / all};
    case step::OpKind::kAllGather:
      return {devices / here * bytes * (all - here) / all, bytes * (here - 1) / all};
    default:
      return {};
  }
}

RC_GTEST_PROP(ExpertLayouts, TakeNoLessThanTheirBytesOnTheLinks, ()) {
  spec::JobSpec job = any_mixture();
  const Layouts layouts = layouts_of(job, 0);
  std::vector<spec::LayoutSpec> spread;
  for (const spec::LayoutSpec& l : layouts.valid) {
    if (l.ep > 1 && l.pp == 1) spread.push_back(l);
  }
  RC_PRE(!spread.empty());
  job.layout = *rc::gen::elementOf(spread);
  const auto found = rank_footprints(job, device_of(job));
  RC_PRE(found.has_value());
  const step::Footprint& rank = found->busiest();
  Needed needed;
  for (const step::CountedExchange& one : rank.exchanges) {
    const Needed more = needed_by(one, rank.choices.layout, job.cluster.devices_per_node);
    needed.network += more.network;
    needed.inside += more.inside;
  }
  const double least = std::max(needed.network / job.cluster.network.bandwidth->count(),
                                needed.inside / job.cluster.link.bandwidth->count());
  const double priced =
      step_seconds(work_of(job, {.imbalance = 1}).value(), shipped_constants()).count();
  RC_CLASSIFY(least > 0.5 * priced, "bound by links");
  if (priced < least) {
    RC_FAIL(fmt::format("{} x {} x {}: {:.4g} s, but its bytes need {:.4g} s", to_text(job.layout),
                        job.batch.micro_batch, job.batch.accumulate, priced, least));
  }
}

// The reviewer's case: thousands of tokens per second and device across slow nodes.
TEST(ExpertLayouts, AcrossNodesAreSlowerThanInsideOne) {
  const auto seconds = [](const char* layout) {
    return step_seconds(work_of(testing::job_of("moe-9b-h200x32", {layout})).value(),
                        shipped_constants());
  };
  // Four neighbours are a node; eight experts over eight ranks are on two.
  EXPECT_LT(seconds("layout={ep=4,fsdp=8}"), seconds("layout={ep=8,fsdp=4}"));
}

}  // namespace
}  // namespace assay::plan
