// Totals against the programs that are executed: they equal the sum over all ops of a rank's
// program, exactly.
#include "step/totals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "spec/load.h"
#include "step/footprint.h"
#include "step/op.h"
#include "step/testing/drawn_jobs.h"
#include "step/testing/rank_totals.h"

namespace assay::step {
namespace {

struct OpSum {
  std::int64_t count = 0;
  double flops = 0;
  std::int64_t read = 0;
  std::int64_t written = 0;
  bool operator==(const OpSum&) const = default;
};
// Includes the dimensions of products, so that what is priced by its shape has the right one.
using TotalKey = std::tuple<Phase, OpKind, ModelPart, std::int64_t, std::int64_t, std::int64_t>;

std::map<TotalKey, OpSum> sums_of(const Program& p) {
  std::map<TotalKey, OpSum> sums;
  for (const Op& op : p.ops) {
    if (op.is_exchange()) continue;
    const bool product = op.kind == OpKind::kMatmul || op.kind == OpKind::kGroupedMatmul;
    const std::int64_t k = !product                       ? 0
                           : op.transpose_a && !op.scaled ? op.in[0].rows
                                                          : op.in[0].cols;
    OpSum& sum = sums[{op.phase, op.kind, op.part, product ? op.out[0].rows : 0,
                       product ? op.out[0].cols : 0, k}];
    const MovedBytes moved = moved_bytes(op, p.buffers);
    ++sum.count;
    sum.flops += op.flops;
    sum.read += moved.read;
    sum.written += moved.written;
  }
  return sums;
}

std::map<TotalKey, OpSum> sums_of(const Totals& totals) {
  std::map<TotalKey, OpSum> sums;
  for (const CountedOp& op : totals.ops) {
    OpSum& sum = sums[{op.phase, op.kind, op.part, op.m, op.n, op.k}];
    sum.count += op.count;
    sum.flops += static_cast<double>(op.count) * op.flops;
    sum.read += op.count * op.read;
    sum.written += op.count * op.written;
  }
  return sums;
}

using CalledKey = std::tuple<Phase, OpKind, Axis, std::int64_t, Exchanged, Dtype, std::int64_t>;

// Counts calls. The phase in which a gather of weights is issued depends on the previous unit.
std::map<CalledKey, std::int64_t> sums_of(const std::vector<CountedExchange>& exchanges) {
  std::map<CalledKey, std::int64_t> calls;
  for (const CountedExchange& one : exchanges) {
    const bool early = one.what == Exchanged::kWeights && one.phase != Phase::kOptimizer;
    calls[{early ? Phase::kForward : one.phase, one.kind, one.axis, one.ranks, one.what, one.type,
           one.elements}] += one.calls;
  }
  return calls;
}

std::string shown(const TotalKey& key) {
  const auto& [phase, kind, part, m, n, k] = key;
  return fmt::format("{} {} {} {}x{}x{}", to_text(phase), to_text(kind), to_text(part), m, n, k);
}
std::string shown(const OpSum& sum) {
  return fmt::format("{} times, {} flops, {} read, {} written", sum.count, sum.flops, sum.read,
                     sum.written);
}
std::string shown(const CalledKey& key) {
  const auto& [phase, kind, axis, ranks, what, type, elements] = key;
  return fmt::format("{} {} {} of {}: {} {} {}", to_text(phase), to_text(kind), to_text(axis),
                     ranks, elements, to_text(type), to_text(what));
}
std::string shown(std::int64_t calls) {
  return fmt::format("{} calls", calls);
}

// The entries that differ between the two; empty if none.
template <class Map>
std::string unlike(const Map& program, const Map& totals) {
  std::string lines;
  for (const auto& [key, sum] : program) {
    const auto found = totals.find(key);
    const bool same = found != totals.end() && found->second == sum;
    if (same) continue;
    lines += fmt::format("{}: {}; totals: {}\n", shown(key), shown(sum),
                         found == totals.end() ? "none" : shown(found->second));
  }
  for (const auto& [key, sum] : totals) {
    if (!program.contains(key)) lines += fmt::format("{}: only in totals\n", shown(key));
  }
  return lines;
}

std::string unlike(const spec::ModelSpec& model, const Choices& choices) {
  const auto program = build(model, choices);
  const auto totals = testing::totals_of(model, choices);
  if (!program || !totals) return program.has_value() == totals.has_value() ? "" : "one is refused";
  return unlike(sums_of(*program), sums_of(*totals)) +
         unlike(sums_of(footprint_of(*program, {}).exchanges), sums_of(totals->exchanges));
}

RC_GTEST_PROP(StepTotals, AreTheSumOfAProgramsOps, ()) {
  const spec::JobSpec job = testing::drawn_job();
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, *job.layout.ranks);
  const std::string found = unlike(job.model, testing::choices_of_rank(job, rank));
  if (!found.empty()) RC_FAIL(found);
}

// Logits in several parts, of which the last is smaller, and biases, which drawn jobs lack.
TEST(StepTotals, OfOddSizesAreTheSumOfAProgramsOps) {
  spec::ModelSpec model{.vocab = 1003,
                        .dim = 96,
                        .layers = 3,
                        .heads = 6,
                        .kv_heads = 3,
                        .head_dim = 16,
                        .ffn = 200,
                        .context = 96};
  model.norm = spec::Norm::kLayerNorm;
  model.mlp = spec::Mlp::kGelu;
  model.bias = true;
  for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
    for (const auto policy : kRecomputePolicies) {
      for (const std::int64_t head_rows : {0, 50, 96, 288}) {
        const Choices choices{.numerics = numerics_of(precision),
                              .recompute = policy,
                              .sequence = 96,
                              .micro_batch = 3,
                              .accumulate = 5,
                              .head_rows = head_rows};
        EXPECT_EQ(unlike(model, choices), "") << head_rows;
      }
    }
  }
}

// A micro-batch through each kind of block, multiplied by the rank's number of them, equals the
// rank's step, except for communication and updates of parameters.
RC_GTEST_PROP(StepTotals, OfAMicroBatchMultiplyToAStep, ()) {
  spec::JobSpec job = testing::drawn_job();
  job.train.recompute = spec::Recompute::kNone;
  job.layout.pp = job.layout.pp_chunks = 1;
  job.layout.pp_schedule = spec::PipelineSchedule::k1f1b;
  const Choices choices = testing::choices_of_rank(job, 0);
  const auto program = build(job.model, choices);
  RC_PRE(program.has_value());
  const MicroTotals of_one = micro_totals(job.model, choices);
  const std::int64_t mixtures = job.model.moe_layers();
  double flops = 0;
  const auto add = [&](const Totals& totals, std::int64_t times) {
    flops += static_cast<double>(times * choices.accumulate) * totals.flops();
  };
  add(of_one.dense, job.model.layers - mixtures);
  add(of_one.mixture, mixtures);
  add(of_one.first, 1);
  add(of_one.last, 1);
  RC_ASSERT(flops == program->flops());
}

TEST(StepTotals, OfPresetsHaveTheFlopsOfTheirPrograms) {
  for (const char* name : {"llama3-8b", "gpt2-124m"}) {
    const spec::ModelSpec model = std::get<spec::ModelSpec>(spec::load(name)->spec);
    const Choices choices{.numerics = numerics_of(spec::Precision::kBf16),
                          .recompute = spec::Recompute::kFfn,
                          .sequence = 1024,
                          .micro_batch = 4};
    EXPECT_DOUBLE_EQ(testing::totals_of(model, choices)->flops(), build(model, choices)->flops())
        << name;
  }
}

TEST(StepTotals, RefuseWhatProgramsRefuse) {
  spec::ModelSpec model = std::get<spec::ModelSpec>(spec::load("nanochat-d24")->spec);
  const Choices choices{.sequence = 64};
  const auto totals = testing::totals_of(model, choices);
  ASSERT_FALSE(totals.has_value());
  EXPECT_EQ(totals.error().line(), build(model, choices).error().line());
}

}  // namespace
}  // namespace assay::step
