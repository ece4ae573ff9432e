// One decoder block, forward and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"
#include "step/mixture.h"

namespace assay::step {

// The buffers of a block's forward pass that its backward pass needs.
struct SavedActivations {
  View x;      // the block's input
  View h;      // normalised; not kept, but recomputed
  View qkv;    // rotated in place
  View heads;  // normalised queries and keys, with qk_norm; else none
  View o;
  View log_sum_exp;
  View keys_values;  // of whole sequences, with context parallelism; not kept, but gathered again
  Op sharing;        // the gather of these, while in flight
  View x1;           // after attention
  View h2;
  View inner;  // gate|up
  View a;      // after the activation
  Routed routed;
  View expert_input;  // rows of h2 sorted by expert, if they had to be recomputed
  View shared_inner;  // of the shared expert
  View shared_a;
  View sum;  // the addend to the residual stream, once started
};

// Computes the block's output from `x`. Everything is kept; the backward pass discards what the
// recompute policy does not keep (recompute.h).
SavedActivations forward_block(Builder& b, const View& x, const View& out);
// Computes the gradient of the block's input from that of its output, in place unless gradients of
// weights are deferred.
View backward_block(Builder& b, SavedActivations kept, const View& dx);
// The norm before the MLP.
void make_mlp_norm(Builder& b, SavedActivations& k);
// Queries and keys, side by side, as attention reads them; values follow them in k.qkv.
View query_key(const SavedActivations& k, const BlockShape& s);
// The units whose weights the current layer uses in that phase, in order.
std::vector<std::int32_t> units_used(const Builder& b, Phase phase);

}  // namespace assay::step
