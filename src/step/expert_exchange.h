// Moves the rows of a mixture between ranks that have different experts (expert parallelism,
// layout.ep). A rank's rows are sorted by expert, so those for one rank are contiguous. They arrive
// ordered by sending rank and are then sorted by local expert; within an expert they stay ordered
// by rank and, within a rank, as they were there, which is the order of all tokens. The rows that
// came from one rank for one expert are multiplied separately (Op::pieces), so that activations
// have the same bits as without expert parallelism.
//
//   rows, by expert ─ kExchangeRows ─ by rank ─ kPermuteRows ─ by expert: products
//   results, by expert ─ kPermuteRows ─ by rank ─ kExchangeRows ─ rows, by expert
//
// How many rows go where depends on the tokens. Buffers have room for the most that a layout allows
// (most_rows_of_rank in shapes.h). Without expert parallelism nothing moves: rows are used as
// given.
#pragma once

#include <optional>

#include "step/mixture.h"

namespace assay::step {

struct RowsInFlight {
  View rows;                 // where they will be
  std::optional<Op> issued;  // none: they are already there
};

// Whether ranks have different experts.
bool experts_are_spread(const Builder& b);
// Rows that this rank's experts compute: the maximum, or the load that totals assume.
std::int64_t rows_of_own_experts(const Builder& b);

// Call once, after the sort: exchanges the counts of rows to and from every rank. The router's
// weights travel with the rows; the returned exchange of them is for the caller to wait for.
std::optional<Op> exchange_row_counts(Builder& b, Routed& routed);

// Sends rows of this rank's tokens to their experts.
RowsInFlight send_to_experts(Builder& b, ModelPart part, const Routed& routed, const char* name,
                             const View& rows);
View rows_at_experts(Builder& b, ModelPart part, const Routed& routed, const char* name,
                     const RowsInFlight& sent);
// Sends rows that this rank's experts have computed back to their tokens, in the order in which
// they arrived.
RowsInFlight send_to_tokens(Builder& b, ModelPart part, const Routed& routed, const char* name,
                            const View& rows);
View rows_at_tokens(Builder& b, const RowsInFlight& sent);
// Sends one number per row, in the order in which rows arrived, back to the slots of their tokens.
RowsInFlight send_numbers_to_slots(Builder& b, ModelPart part, const Routed& routed,
                                   const char* name, const View& numbers);
View numbers_at_slots(Builder& b, ModelPart part, const Routed& routed, const char* name,
                      const RowsInFlight& sent);

}  // namespace assay::step
