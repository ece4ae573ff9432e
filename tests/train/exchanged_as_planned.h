// Compares what a rank has exchanged, by its log, with what the job's plan says of its kind of
// rank.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "plan/rank_footprints.h"
#include "step/footprint.h"
#include "train/backend.h"

namespace assay::train {

struct ExchangedTotal {
  std::int64_t calls = 0;
  std::int64_t elements = 0;
  bool operator==(const ExchangedTotal&) const = default;
};
using ExchangedTotals = std::map<std::pair<step::OpKind, step::Axis>, ExchangedTotal>;

inline ExchangedTotals executed_totals(const ExecutedLog& log) {
  ExchangedTotals totals;
  for (const Executed& one : log) {
    if (one.op->axis == step::Axis::kNone || one.kind == step::OpKind::kWait) continue;
    const bool out = one.kind == step::OpKind::kAllGather || one.kind == step::OpKind::kReceive;
    // Of rows that go to experts, this rank's own: those at the end where there are fewer.
    const bool returns = one.kind == step::OpKind::kExchangeRows && one.out.at(0) < one.in.at(0);
    const auto& shape = out || returns ? one.out.at(0) : one.in.at(0);
    ExchangedTotal& total = totals[{one.kind, one.op->axis}];
    ++total.calls;
    total.elements += shape[0] * shape[1];
  }
  return totals;
}

// The executed totals and the memory are those of the rank's own footprint, and no more than what
// the plan shows: of the rank that holds most, and of the one that exchanges most.
inline void expect_exchanged_as_planned(const ExecutedLog& log, const spec::JobSpec& job,
                                        const step::Program& program,
                                        const step::MemoryPlan& memory, std::int64_t steps) {
  const auto planned = plan::rank_footprints(job, {.cpu = true});
  ASSERT_TRUE(planned.has_value()) << planned.error().line();
  EXPECT_EQ(planned->recompute, program.choices.recompute);
  const auto own = step::footprint_of(job.model, program.choices);
  ASSERT_TRUE(own.has_value()) << own.error().line();
  ExchangedTotals expected;
  for (const step::CountedExchange& one : own->exchanges) {
    ExchangedTotal& total = expected[{one.kind, one.axis}];
    total.calls += steps * one.calls;
    total.elements += steps * one.calls * one.elements;
  }
  // Before the first step, once: what every step begins with and gathers for the next one.
  for (const step::Op& op : program.prologue) {
    if (op.kind == step::OpKind::kWait) continue;
    ExchangedTotal& total = expected[{op.kind, op.axis}];
    ++total.calls;
    total.elements += op.out[0].elements();
  }
  EXPECT_EQ(executed_totals(log), expected);
  EXPECT_EQ(memory.bytes, own->memory.bytes);
  EXPECT_LE(memory.bytes, planned->largest().memory.bytes);
  EXPECT_LE(own->exchanged_bytes(), planned->busiest().exchanged_bytes());
}

}  // namespace assay::train
