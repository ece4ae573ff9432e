// Compares what a rank has exchanged, by its log, with what the job's plan says of its kind of
// rank.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plan/rank_footprints.h"
#include "step/pipeline.h"
#include "train/backend.h"

namespace assay::train {

struct ExchangedTotal {
  std::int64_t calls = 0;
  std::int64_t elements = 0;
  bool operator==(const ExchangedTotal&) const = default;
};
using ExchangedTotals = std::map<std::pair<step::Kind, step::Axis>, ExchangedTotal>;

inline ExchangedTotals executed_totals(const ExecutedLog& log) {
  ExchangedTotals totals;
  for (const Executed& one : log) {
    if (one.op->axis == step::Axis::kNone || one.kind == step::Kind::kWait) continue;
    const bool out = one.kind == step::Kind::kAllGather || one.kind == step::Kind::kReceive;
    const auto& shape = out ? one.out.at(0) : one.in.at(0);
    ExchangedTotal& total = totals[{one.kind, one.op->axis}];
    ++total.calls;
    total.elements += shape[0] * shape[1];
  }
  return totals;
}

// The plan has one rank of each kind: of stages in the middle, one with as many layers.
inline void expect_exchanged_as_planned(const ExecutedLog& log, const spec::JobSpec& job,
                                        const step::Program& program,
                                        const step::MemoryPlan& memory, std::int64_t steps) {
  const auto planned = plan::rank_footprints(job, {.cpu = true});
  ASSERT_TRUE(planned.has_value()) << planned.error().line();
  EXPECT_EQ(planned->recompute, program.choices.recompute);
  const auto kind_of = [&](const step::Layout& layout) {
    const std::int64_t stage = layout.pipeline.rank;
    return std::pair{
        layout.first_stage()  ? 0
        : layout.last_stage() ? 2
                              : 1,
        step::layers_of_stage(job.model.layers, stage, job.layout.pp, job.layout.pp_chunks)};
  };
  const auto alike = std::find_if(
      planned->ranks.begin(), planned->ranks.end(), [&](const step::Footprint& footprint) {
        return kind_of(footprint.choices.layout) == kind_of(program.choices.layout);
      });
  ASSERT_NE(alike, planned->ranks.end());
  ExchangedTotals expected;
  for (const step::CountedExchange& one : alike->exchanges) {
    ExchangedTotal& total = expected[{one.kind, one.axis}];
    total.calls += steps * one.calls;
    total.elements += steps * one.calls * one.elements;
  }
  EXPECT_EQ(executed_totals(log), expected);
  EXPECT_LE(memory.bytes, alike->memory.bytes);
  if (alike->choices.layout.rank() == program.choices.layout.rank()) {
    EXPECT_EQ(memory.bytes, alike->memory.bytes);
  }
}

}  // namespace assay::train
