// The shared expert of a mixture, which every token uses, if the model has one: a separate MLP
// whose result is added to that of the others. With expert parallelism it is computed while rows
// are in flight (mixture.cc). Without a shared expert these functions do nothing.
#pragma once

#include "step/block.h"

namespace assay::step {

bool has_shared(const Builder& b);
void forward_shared(Builder& b, SavedActivations& k);
void activate_shared(Builder& b, SavedActivations& k);
// Adds the result into `sum`, with the residual if that is not null.
void shared_into(Builder& b, SavedActivations& k, const View& sum, const View* residual);
// The backward pass: first through the down projection and the activation, then to the MLP's input.
void backward_shared(Builder& b, SavedActivations& k, const View& dout);
void add_shared_gradients(Builder& b, SavedActivations& k, const View& dh);

}  // namespace assay::step
