// Footprints against the programs that they are counted from, op by op; and, for one layout,
// against figures by hand.
#include "step/footprint.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "step/testing/drawn_jobs.h"

namespace assay::step {
namespace {

using ExchangeKey = std::tuple<OpKind, Axis, Phase, Dtype, std::int64_t, std::int64_t>;

// The rows of a rank's tokens at experts: all their choices, or what a capacity leaves of them.
std::int64_t own_rows(const Program& p) {
  const spec::ModelSpec& m = p.model;
  const auto slots = static_cast<double>(p.micro_tokens() * m.experts_per_token);
  if (m.capacity == 0) return static_cast<std::int64_t>(slots);
  const double each = std::min(std::ceil(m.capacity * slots / static_cast<double>(m.experts)),
                               static_cast<double>(p.micro_tokens()));
  return static_cast<std::int64_t>(std::min(slots, each * static_cast<double>(m.experts)));
}

// Every exchange that the program issues, by kind, axis, phase, type, ranks and elements.
std::map<ExchangeKey, std::int64_t> listed_exchanges(const Program& p) {
  std::map<ExchangeKey, std::int64_t> calls;
  for (const Op& op : p.ops) {
    const bool rows = op.kind == OpKind::kExchangeRows;
    const bool sends = op.kind == OpKind::kSend || op.kind == OpKind::kAllToAll || rows;
    const bool receives = op.kind == OpKind::kReceive || op.kind == OpKind::kAllGather;
    if (!sends && !receives) continue;
    const View& view = sends ? op.in.at(0) : op.out.at(0);
    ++calls[{op.kind, op.axis, op.phase, p.buffers[static_cast<std::size_t>(view.buffer)].type,
             static_cast<std::int64_t>(p.choices.layout.members(op.axis).size()),
             rows ? view.cols * own_rows(p) : view.elements()}];
  }
  return calls;
}

std::map<ExchangeKey, std::int64_t> counted_exchanges(const Footprint& footprint) {
  std::map<ExchangeKey, std::int64_t> calls;
  for (const CountedExchange& one : footprint.exchanges) {
    calls[{one.kind, one.axis, one.phase, one.type, one.ranks, one.elements}] += one.calls;
  }
  return calls;
}

// For every rank, even though not every micro-batch is unrolled.
RC_GTEST_PROP(Footprint, IsWhatTheProgramOfTheRankHas, ()) {
  const spec::JobSpec job = testing::drawn_job();
  const std::int64_t ranks = job.layout.dp * job.layout.inner_ranks();
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, ranks);
  const Choices choices = testing::choices_of_rank(job, rank);
  const auto program = build(job.model, choices);
  const auto footprint = footprint_of(job.model, choices);
  RC_ASSERT(program.has_value() == footprint.has_value());
  if (!program) return;
  RC_ASSERT(counted_exchanges(*footprint) == listed_exchanges(*program));
  const MemoryPlan memory = plan_memory(*program);
  RC_ASSERT(footprint->memory.bytes == memory.bytes);
  for (int i = 0; i < kStorages; ++i) {
    RC_ASSERT(footprint->memory.of_storage[i] == memory.of_storage[i]);
  }
  const double flops = program->flops();
  RC_ASSERT(std::abs(footprint->flops - flops) <= 1e-12 * flops);
  const Footprint whole = footprint_of(*program, memory);
  RC_ASSERT(counted_exchanges(whole) == counted_exchanges(*footprint));
  RC_ASSERT(std::abs(whole.folded_bytes - footprint->folded_bytes) <= 1e-12 * whole.folded_bytes);
  std::int64_t elements = 0;
  for (const UnitKind& kind : footprint->units) elements += kind.elements;
  for (const Unit& unit : program->units) elements -= unit.elements;
  RC_ASSERT(elements == 0);
}

// Replicas with 3 layers and 4 micro-batches: each unit's gradients are sent 4 times and gathered
// once.
TEST(Footprint, OfReplicas) {
  const spec::ModelSpec model{.vocab = 128,
                              .dim = 32,
                              .layers = 3,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_dim = 8,
                              .ffn = 64,
                              .context = 16};
  const auto footprint = footprint_of(
      model,
      {.layout = *layout_of({.dp = 2}, 0), .sequence = 16, .micro_batch = 1, .accumulate = 4});
  ASSERT_TRUE(footprint.has_value());
  std::map<std::tuple<Exchanged, std::string, OpKind, Axis>, std::int64_t> calls;
  for (const CountedExchange& one : footprint->exchanges) {
    EXPECT_EQ(one.ranks, 2);
    calls[{one.what, one.units, one.kind, one.axis}] += one.calls;
    // Four bytes each: the block's four matrices and two norms, each padded to a multiple of 128.
    if (one.units != "layers") continue;
    EXPECT_EQ(one.bytes(), 4 * (32 * (3 * 32 + 32 + 3 * 64) + 2 * 128));
  }
  const decltype(calls) expected = {
      {{Exchanged::kGradients, "embedding", OpKind::kAllToAll, Axis::kData}, 4},
      {{Exchanged::kGradients, "layers", OpKind::kAllToAll, Axis::kData}, 12},
      {{Exchanged::kGradients, "head", OpKind::kAllToAll, Axis::kData}, 4},
      {{Exchanged::kGradients, "embedding", OpKind::kAllGather, Axis::kReplica}, 1},
      {{Exchanged::kGradients, "layers", OpKind::kAllGather, Axis::kReplica}, 3},
      {{Exchanged::kGradients, "head", OpKind::kAllGather, Axis::kReplica}, 1},
      {{Exchanged::kScalars, "", OpKind::kAllGather, Axis::kData}, 2}};
  EXPECT_EQ(calls, expected);
  ASSERT_EQ(footprint->units.size(), 3U);
  EXPECT_EQ(footprint->units[1].name, "layers");
  EXPECT_EQ(footprint->units[1].count, 3);
}

}  // namespace
}  // namespace assay::step
