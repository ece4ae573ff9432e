// The MLP of a block that is a mixture of experts: the router, the rows of each expert, their
// products, and the way back.
#pragma once

#include "step/builder.h"

namespace assay::step {

struct SavedActivations;

// The assignment of a mixture's tokens to experts.
struct Routed {
  View logits;
  View weights;  // for each of a token's experts
  View experts;
  View counts;      // slots per expert
  View rows;        // the row of each slot
  View slots;       // the slot of each row
  View first_rows;  // of this rank's experts, then the end
  // The factors that the activation multiplies rows by, and each row's index into them: the
  // router's weights and slots or, with expert parallelism, what arrived (expert_exchange.h).
  View row_weights;
  View row_sources;
  // Only with expert parallelism: row counts, and the position of each row that arrived.
  View sent;
  View received;
  View places;
};

// Experts are chosen only once, unless attention is recomputed. `out`: the block's output; null
// during recomputation.
void forward_mixture(Builder& b, SavedActivations& k, const View* out);
void activate_mixture(Builder& b, SavedActivations& k);
void mixture_into_stream(Builder& b, SavedActivations& k, const View& out);
View backward_mixture(Builder& b, SavedActivations& k, const View& dx);

}  // namespace assay::step
