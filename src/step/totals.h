// Totals: a step as a short list of distinct ops and exchanges, each with how often it is executed;
// without buffers, names or order. What a search prices.
//
// They come from the same functions as a program (builder.h), through another sink: a block of each
// kind is emitted once, and counts for all layers and micro-batches of its kind. totals_test.cc
// compares them with the sum over programs' ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "step/counted_exchange.h"
#include "step/program.h"

namespace assay::step {

// The same op, so many times.
struct CountedOp {
  Kind kind = Kind::kMatmul;
  Phase phase = Phase::kForward;
  Part part = Part::kQkv;
  Dtype type = Dtype::kF32;  // of the first operand, or of the result if there is none
  // Of a product: rows and columns of its result, and what is summed over. Of a kGroupedMatmul so
  // many experts share its rows, or, where it makes their gradients, what is summed over.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 1;
  bool groups_share_k = false;
  double flops = 0;          // of one
  std::int64_t read = 0;     // bytes of one
  std::int64_t written = 0;  // likewise
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t bytes() const { return read + written; }  // of one
  [[nodiscard]] bool is_product() const {
    return kind == Kind::kMatmul || kind == Kind::kGroupedMatmul;
  }
  [[nodiscard]] bool same_but_count(const CountedOp& other) const;
};

// When a rank comes to what.
struct Moment {
  enum class What : std::uint8_t { kOp, kIssue, kWait };
  What what = What::kOp;
  std::size_t index = 0;     // of Totals::ops, or of exchanges
  std::int32_t ticket = -1;  // of an exchange: which one it is that is issued and waited for
};

struct Totals {
  std::vector<CountedOp> ops;
  // Those of weights are of the forward phase, whenever they are issued.
  std::vector<CountedExchange> exchanges;
  // Of micro_totals: what is computed while what is on its way.
  std::vector<Moment> order;

  [[nodiscard]] double flops() const;
};

// Of a rank's whole step, exactly; fails as build() does. Takes about a millisecond: parameters are
// listed one by one, because which part of them a rank has depends on their places.
base::Result<Totals> totals_of(const spec::ModelSpec& model, const Choices& choices);

// Of one micro-batch, through one block of each kind and through what comes before and after the
// blocks; with what ranks exchange of activations, and without what they do about parameters. Takes
// microseconds, and depends on tensor, context and expert ranks alone, so that searches multiply it
// with layers, stages and micro-batches. Refuses nothing: for models and layouts of spec's rules.
// How many rows experts over ranks get is Choices::expert_load.
struct MicroTotals {
  Totals dense;    // empty if the model has none
  Totals mixture;  // likewise
  Totals first;    // tokens read and embedded, and back
  Totals last;     // final norm, logits and loss, and back
};
MicroTotals micro_totals(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step
