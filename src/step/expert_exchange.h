// Rows of a mixture on their way between ranks that have different experts (layout.ep). A rank's
// rows are in the order of experts, so those for each rank are neighbours. They arrive rank after
// rank, and are brought into the order of the experts that are here: each expert's by rank, then as
// that rank had them, which is the order of all tokens. A rank's rows of one expert are multiplied
// by themselves (Op::pieces): so activations have the bits that they have where all experts are.
//
//   rows, by expert ─ kExchangeRows ─ by rank ─ kPermuteRows ─ by expert: products
//   rows, by expert ─ kExchangeRows ─ by rank ─ kPermuteRows ─ what they made
//
// How many rows go where depends on the tokens. Buffers have room for the most that a layout allows
// (most_rows_of_rank in shapes.h). Where every rank has all experts, nothing travels: rows are as
// they were given.
#pragma once

#include <optional>

#include "step/builder.h"

namespace assay::step {

struct Travelling {
  View rows;                 // where they will be
  std::optional<Op> issued;  // none: they are there
};

// Ranks have different experts.
bool experts_are_spread(const Builder& b);
// Rows that this rank's experts compute: at most, or with the load that totals are made for.
std::int64_t rows_of_own_experts(const Builder& b);

// After the sort, once: counts of rows to every rank, and of those that will come. Of the router's
// weights, which go with the rows, the exchange is the caller's to wait for.
std::optional<Op> meet_experts(Builder& b, Routed& routed);

// Rows of this rank's tokens, to their experts.
Travelling send_to_experts(Builder& b, Part part, const Routed& routed, const char* name,
                           const View& rows);
View arrived_at_experts(Builder& b, Part part, const Routed& routed, const char* name,
                        const Travelling& sent);
// Rows that this rank's experts have made, to their tokens: in the order in which they were sent.
Travelling send_to_tokens(Builder& b, Part part, const Routed& routed, const char* name,
                          const View& rows);
View arrived_at_tokens(Builder& b, const Travelling& sent);
// Numbers of rows that lie as the rows arrived, one each: for each slot of this rank's tokens.
Travelling send_numbers_to_slots(Builder& b, Part part, const Routed& routed, const char* name,
                                 const View& numbers);
View arrived_at_slots(Builder& b, Part part, const Routed& routed, const char* name,
                      const Travelling& sent);

}  // namespace assay::step
