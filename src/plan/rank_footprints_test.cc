// What a plan says of its ranks against the programs of all of them, op by op and byte by byte.
#include "plan/rank_footprints.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/plan.h"
#include "step/testing/drawn_jobs.h"

namespace assay::plan {
namespace {

using step::Op;
using step::OpKind;

struct Listed {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  bool operator==(const Listed&) const = default;
};
using ListedCalls = std::map<std::tuple<std::string, std::string, step::Dtype>, Listed>;

// By kind, axis and type: what the ops of a program issue.
ListedCalls listed_calls(const step::Program& p) {
  ListedCalls calls;
  for (const Op& op : p.ops) {
    const bool rows = op.kind == OpKind::kExchangeRows;  // an all-to-all of a rank's own rows
    const bool sends = op.kind == OpKind::kSend || op.kind == OpKind::kAllToAll || rows;
    const bool receives = op.kind == OpKind::kReceive || op.kind == OpKind::kAllGather;
    if (!sends && !receives) continue;
    const step::View& view = sends ? op.in.at(0) : op.out.at(0);
    const OpKind kind = rows ? OpKind::kAllToAll : op.kind;
    Listed& row = calls[{std::string(to_text(kind)), std::string(to_text(op.axis)),
                         p.buffers[static_cast<std::size_t>(view.buffer)].type}];
    ++row.calls;
    row.bytes += rows ? std::min(p.bytes_of(view), p.bytes_of(op.out.at(0))) : p.bytes_of(view);
  }
  return calls;
}

ListedCalls planned_calls(const PlannedExchange& exchange) {
  ListedCalls calls;
  for (const PlannedCalls& one : exchange.calls) {
    Listed& row = calls[{std::string(to_text(one.calls.kind)), one.among, one.calls.type}];
    row.calls += one.calls.calls;
    row.bytes += one.calls.bytes;
  }
  return calls;
}

std::int64_t listed_bytes(const step::Program& p) {
  std::int64_t sum = 0;
  for (const auto& [key, row] : listed_calls(p)) sum += row.bytes;
  return sum;
}

// The precision is the device's: fp32 is what CPUs compute in.
RankDevice device_for(const spec::JobSpec& job) {
  return {.cpu = job.train.precision == spec::Precision::kFp32};
}

RC_GTEST_PROP(RankFootprints, AreTheProgramsOfAllRanks, ()) {
  const spec::JobSpec job = step::testing::drawn_job();
  const RankDevice device = device_for(job);
  const auto found = rank_footprints(job, device);
  Plan plan;
  const auto added = add_programs(plan, job, device);
  const auto first = step::build(job.model, step::testing::choices_of_rank(job, 0));
  RC_ASSERT(found.has_value() == first.has_value());
  RC_ASSERT(added.has_value() == first.has_value());
  if (!found) return;
  std::int64_t most_memory = 0;
  std::int64_t most_exchanged = 0;
  const std::int64_t ranks = job.layout.dp * job.layout.inner_ranks();
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto program = step::build(job.model, step::testing::choices_of_rank(job, rank));
    RC_ASSERT(program.has_value());
    const std::int64_t memory = step::plan_memory(*program).bytes;
    most_memory = std::max(most_memory, memory);
    most_exchanged = std::max(most_exchanged, listed_bytes(*program));
    // What the plan says of this rank, if it speaks of it.
    for (const step::Footprint& footprint : found->ranks) {
      if (footprint.choices.layout.rank() != rank) continue;
      RC_ASSERT(planned_calls(exchange_of(footprint)) == listed_calls(*program));
      RC_ASSERT(memory_of(footprint, {}).total().count() == memory);
    }
    if (plan.exchange->rank == rank) {
      RC_ASSERT(planned_calls(*plan.exchange) == listed_calls(*program));
    }
    if (plan.memory->rank == rank) RC_ASSERT(plan.memory->need.total().count() == memory);
  }
  // No rank holds or exchanges more than those that the plan speaks of.
  // Of many ranks with Muon the plan looks at those with most matrices.
  const std::int64_t planned_memory = plan.memory->need.total().count();
  const bool muon = job.train.optimizer == spec::Optimizer::kMuon;
  RC_ASSERT(planned_memory <= most_memory);
  RC_ASSERT(planned_memory >= most_memory - (muon ? most_memory / 50 : 0));
  std::int64_t shown = 0;
  for (const auto& [key, row] : planned_calls(*plan.exchange)) shown += row.bytes;
  RC_ASSERT(shown == most_exchanged);
}

spec::ModelSpec small_model() {
  return {.vocab = 64,
          .dim = 32,
          .layers = 4,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 8,
          .ffn = 64,
          .context = 16};
}

TEST(RankFootprints, WhatIsTooLongToCountIsRefused) {
  spec::JobSpec job;
  job.model = small_model();
  job.layout = {.dp = 1, .pp = 2};
  job.batch = {.sequence = 16, .micro_batch = 1, .accumulate = 1'000'000};
  EXPECT_EQ(rank_footprints(job, {}).error().where, "batch");
  job.batch.accumulate = 1;
  job.layout = {.dp = 100'000'000};
  EXPECT_EQ(rank_footprints(job, {}).error().where, "layout");
}

// Deeper than any model: placing their buffers takes minutes. Plans have a closed form.
TEST(RankFootprints, OfVeryManyLayersAreNotCounted) {
  spec::JobSpec job;
  job.model = small_model();
  job.layout = {.dp = 1};
  job.batch = {.sequence = 16, .micro_batch = 1, .accumulate = 1};
  job.model.layers = 10'000;
  EXPECT_EQ(rank_footprints(job, {}).error().where, "model.layers");
}

// Of a step of any length.
TEST(RankFootprints, OfManyMicroBatchesAreThoseOfFewTimes) {
  spec::JobSpec job;
  job.model = small_model();
  job.layout = {.dp = 1, .fsdp = 2, .zero = 2};
  job.batch = {.sequence = 16, .micro_batch = 1, .accumulate = 1'000'000};
  job.train.recompute = spec::Recompute::kNone;
  const auto found = rank_footprints(job, {});
  ASSERT_TRUE(found.has_value());
  const PlannedExchange exchange = exchange_of(found->busiest());
  std::int64_t elements = 0;
  for (const GroupTraffic& group : exchange.groups) elements += group.elements;
  EXPECT_EQ(exchange.bytes().all_to_all, 2 * elements * 1'000'000);
  EXPECT_EQ(exchange.bytes().all_gather, 2 * elements);
}

}  // namespace
}  // namespace assay::plan
