// Totals: a part of a step as a short list of distinct ops and exchanges, each with the number of
// times it is executed; without buffers and names. The planner prices those of one micro-batch
// through one block of each kind, and multiplies. It has separate closed forms for what a step
// has once: the exchange of parameters and their gradients, and the optimizer.
//
// They are built by the same functions as a program (builder.h), through another sink
// (totals_sink.h). totals_test.cc compares them with the ops of programs: the flops of a
// micro-batch, times layers and micro-batches; and everything, of a whole step built in the same
// way (testing/rank_totals.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "step/counted_exchange.h"
#include "step/program.h"

namespace assay::step {

// The same op, `count` times.
struct CountedOp {
  OpKind kind = OpKind::kMatmul;
  Phase phase = Phase::kForward;
  ModelPart part = ModelPart::kQkv;
  Dtype type = Dtype::kF32;  // of the first operand, or of the result if there is none
  // For products: rows and columns of the result, and the summed dimension. For kGroupedMatmul,
  // `groups` experts share m or, if it computes weight gradients (groups_share_k), k.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 1;
  bool groups_share_k = false;
  double flops = 0;          // per op
  std::int64_t read = 0;     // bytes per op
  std::int64_t written = 0;  // likewise
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t bytes() const { return read + written; }  // per op
  [[nodiscard]] bool is_product() const {
    return kind == OpKind::kMatmul || kind == OpKind::kGroupedMatmul;
  }
  [[nodiscard]] bool same_but_count(const CountedOp& other) const;
};

// An event in the order in which a rank reaches it.
struct ScheduleEvent {
  enum class What : std::uint8_t { kOp, kIssue, kWait };
  What what = What::kOp;
  std::size_t index = 0;     // into Totals::ops or Totals::exchanges
  std::int32_t ticket = -1;  // identifies the exchange that is issued or waited for
};

struct Totals {
  std::vector<CountedOp> ops;
  // Exchanges of weights count as forward phase, whenever they are issued.
  std::vector<CountedExchange> exchanges;
  // Only of micro_totals(): shows what is computed while exchanges are in flight.
  std::vector<ScheduleEvent> order;

  [[nodiscard]] double flops() const;
};

// For one micro-batch, through one block of each kind and what comes before and after the blocks;
// includes the communication of activations, but not that of parameters. Takes microseconds, and
// depends only on the tensor, context and expert ranks, so that searches can multiply it by layers,
// stages and micro-batches. Refuses nothing: models and layouts must satisfy spec's rules. With
// expert parallelism, Choices::expert_load gives the rows that experts get.
struct MicroTotals {
  Totals dense;    // empty if the model has no dense blocks
  Totals mixture;  // likewise
  Totals first;    // reading and embedding tokens, and the backward pass of that
  Totals last;     // final norm, logits and loss, and their backward pass
};
MicroTotals micro_totals(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step
