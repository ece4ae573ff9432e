// What the parts of the optimizer (optimizer.cc, gradient_norm.h, updates.h) share: the parameters
// of a unit, and gathering what other ranks have.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "step/builder.h"

namespace assay::step {

// By their place in the unit.
std::vector<const Parameter*> parameters_of_unit(const Program& program, std::size_t unit);

// Issued, not waited for.
Op gather_along(Builder& b, Axis axis, Part part, const View& own, const View& all,
                std::int32_t unit);

// Everybody's along an axis: on its way, or what this rank has if it is alone.
struct Gathering {
  View all;
  std::optional<Op> issued;
};
Gathering begin_gather(Builder& b, const char* name, Part part, const View& own, Axis axis);
View end_gather(Builder& b, const Gathering& gathering);
// Along some axes: rows of the ranks along the first, for each along the second, …
View gather(Builder& b, const char* name, Part part, const View& own,
            std::initializer_list<Axis> axes);

}  // namespace assay::step
