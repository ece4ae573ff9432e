// Shared by the parts of the optimizer (optimizer.cc, gradient_norm.h, updates.h): the parameters
// of a unit, and gathering from other ranks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "step/builder.h"

namespace assay::step {

// In the order of their positions in the unit.
std::vector<const Parameter*> parameters_of_unit(const Program& program, std::size_t unit);

// Issues an all-gather without waiting for it.
Op gather_along(Builder& b, Axis axis, Part part, const View& own, const View& all,
                std::int32_t unit);

// The data of all ranks along an axis, possibly still in flight; this rank's own if it is the only
// one.
struct Gathering {
  View all;
  std::optional<Op> issued;
};
Gathering begin_gather(Builder& b, const char* name, Part part, const View& own, Axis axis);
View end_gather(Builder& b, const Gathering& gathering);
// Along several axes: the rows of the ranks along the first, for each along the second, …
View gather(Builder& b, const char* name, Part part, const View& own,
            std::initializer_list<Axis> axes);

}  // namespace assay::step
