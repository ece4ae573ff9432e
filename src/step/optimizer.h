// The end of a step, after the last micro-batch: losses, the completion of gradients, their norm
// (gradient_norm.h) and the updates (updates.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "step/builder.h"

namespace assay::step {

// Sums the losses of all micro-batches; all that is left to do where nothing is trained.
void add_losses(Builder& b);
// The same, and updates weights.
void build_optimizer(Builder& b);

// For the parts of the optimizer: the parameters of a unit, in the order of their positions in it.
std::vector<const Parameter*> parameters_of_unit(const Program& program, std::size_t unit);

// Issues an all-gather without waiting for it.
Op gather_along(Builder& b, Axis axis, ModelPart part, const View& own, const View& all,
                std::int32_t unit);

// The data of all ranks along an axis, possibly still in flight; this rank's own if it is the only
// one.
struct Gathering {
  View all;
  std::optional<Op> issued;
};
Gathering begin_gather(Builder& b, const char* name, ModelPart part, const View& own, Axis axis);
View end_gather(Builder& b, const Gathering& gathering);
// Along several axes: the rows of the ranks along the first, for each along the second, …
View gather(Builder& b, const char* name, ModelPart part, const View& own,
            std::initializer_list<Axis> axes);

}  // namespace assay::step
