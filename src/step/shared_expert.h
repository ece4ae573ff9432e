// The expert of a mixture that every token uses, if the model has one: an MLP of its own beside the
// others, whose result is added to theirs. Where rows travel to other ranks' experts it is computed
// meanwhile (mixture.cc). All of these do nothing where there is none.
#pragma once

#include "step/builder.h"

namespace assay::step {

bool has_shared(const Builder& b);
void forward_shared(Builder& b, Kept& k);
void activate_shared(Builder& b, Kept& k);
// Into `sum`, with the residual if that is not null.
void shared_into(Builder& b, Kept& k, const View& sum, const View* residual);
// From the gradient of the mixture's result through the activation; then to what the MLP read.
void backward_shared(Builder& b, Kept& k, const View& dout);
void add_shared_gradients(Builder& b, Kept& k, const View& dh);

}  // namespace assay::step
