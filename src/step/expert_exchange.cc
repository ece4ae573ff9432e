#include "step/expert_exchange.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace assay::step {
namespace {

std::int64_t own_rows(const Builder& b) {
  return rows_of_experts(b.model(), b.program().micro_tokens());
}

Dtype rows_type(const Builder& b) {
  return b.program().choices.numerics.activations;
}

// The same elements, each as a row.
View as_column(const View& view) {
  return {view.buffer, view.offset, view.elements(), 1, 1};
}

View whole_numbers(Builder& b, const char* name, std::int64_t rows, std::int64_t cols) {
  return b.matrix(b.named(name), rows, cols, Dtype::kI32, Storage::kActivations);
}

View permute(Builder& b, ModelPart part, const std::string& name, const View& x, const View& index,
             Dtype type) {
  const View to = b.matrix(b.named(name.c_str()), index.rows, x.cols, type, Storage::kActivations);
  b.emit({.kind = OpKind::kPermuteRows, .part = part, .in = {x, index}, .out = {to}});
  return to;
}

RowsInFlight exchange(Builder& b, ModelPart part, const std::string& name, const View& rows,
                      const View& sent, const View& received, std::int64_t most, Dtype type) {
  const View to = b.matrix(b.named(name.c_str()), most, rows.cols, type, Storage::kActivations);
  return {to, b.issue({.kind = OpKind::kExchangeRows,
                       .part = part,
                       .in = {rows, sent, received},
                       .out = {to},
                       .axis = Axis::kExpert})};
}

View arrived(Builder& b, const RowsInFlight& sent) {
  if (sent.issued) b.wait(*sent.issued);
  return sent.rows;
}

}  // namespace

bool experts_are_spread(const Builder& b) {
  return b.program().choices.layout.spreads_experts();
}

std::int64_t rows_of_own_experts(const Builder& b) {
  const std::int64_t most = most_rows_of_rank(b.model(), b.program().micro_tokens(),
                                              b.program().choices.layout.expert.ranks);
  const double load = b.program().choices.expert_load;
  if (load <= 0) return most;
  const double rows = std::round(load * static_cast<double>(own_rows(b)));
  return std::min(most, static_cast<std::int64_t>(rows));
}

std::optional<Op> exchange_row_counts(Builder& b, Routed& r) {
  r.row_weights = r.weights;
  r.row_sources = r.slots;
  if (!experts_are_spread(b)) return std::nullopt;
  const std::int64_t ranks = b.program().choices.layout.expert.ranks;
  const std::int64_t own = b.model().experts / ranks;
  const std::int64_t most = rows_of_own_experts(b);
  r.received = whole_numbers(b, "expert rows received", ranks, own);
  b.wait(b.issue({.kind = OpKind::kAllToAll,
                  .part = ModelPart::kRouter,
                  .in = {r.sent},
                  .out = {r.received},
                  .axis = Axis::kExpert}));
  r.first_rows = whole_numbers(b, "first rows of own experts", 1, ranks * own + 1);
  r.row_sources = whole_numbers(b, "rows as they arrived", most, 1);
  r.places = whole_numbers(b, "places of arrived rows", most, 1);
  b.emit({.kind = OpKind::kArrangeRows,
          .part = ModelPart::kRouter,
          .in = {r.sent, r.received},
          .out = {r.first_rows, r.row_sources, r.places}});
  const View by_row = permute(b, ModelPart::kRouter, "router weights of rows", as_column(r.weights),
                              r.slots, Dtype::kF32);
  const RowsInFlight weights = exchange(b, ModelPart::kRouter, "router weights received", by_row,
                                        r.sent, r.received, most, Dtype::kF32);
  r.row_weights = weights.rows;
  return weights.issued;
}

RowsInFlight send_to_experts(Builder& b, ModelPart part, const Routed& r, const char* name,
                             const View& rows) {
  if (!experts_are_spread(b)) return {rows, std::nullopt};
  return exchange(b, part, std::string(name) + " received", rows, r.sent, r.received,
                  rows_of_own_experts(b), rows_type(b));
}

View rows_at_experts(Builder& b, ModelPart part, const Routed& r, const char* name,
                     const RowsInFlight& sent) {
  const View rows = arrived(b, sent);
  if (!experts_are_spread(b)) return rows;
  return permute(b, part, std::string(name) + " by expert", rows, r.row_sources, rows_type(b));
}

RowsInFlight send_to_tokens(Builder& b, ModelPart part, const Routed& r, const char* name,
                            const View& rows) {
  if (!experts_are_spread(b)) return {rows, std::nullopt};
  const View by_rank =
      permute(b, part, std::string(name) + " by rank", rows, r.places, rows_type(b));
  return exchange(b, part, std::string(name) + " returned", by_rank, r.received, r.sent,
                  own_rows(b), rows_type(b));
}

View rows_at_tokens(Builder& b, const RowsInFlight& sent) {
  return arrived(b, sent);
}

RowsInFlight send_numbers_to_slots(Builder& b, ModelPart part, const Routed& r, const char* name,
                                   const View& numbers) {
  if (!experts_are_spread(b)) return {numbers, std::nullopt};
  return exchange(b, part, std::string(name) + " returned", numbers, r.received, r.sent,
                  own_rows(b), Dtype::kF32);
}

View numbers_at_slots(Builder& b, ModelPart part, const Routed& r, const char* name,
                      const RowsInFlight& sent) {
  const View numbers = arrived(b, sent);
  if (!experts_are_spread(b)) return numbers;
  const View by_slot = permute(b, part, name, numbers, as_column(r.rows), Dtype::kF32);
  return {by_slot.buffer, by_slot.offset, r.rows.rows, r.rows.cols, r.rows.cols};
}

}  // namespace assay::step
