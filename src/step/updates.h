// Updates: what the optimizer does with complete gradients and their norm. Each rank updates the
// parameters whose optimizer state it keeps; a single rank updates all.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"

namespace assay::step {

class Updates {
 public:
  explicit Updates(Builder& b) : b_(b), p_(b.program()) {}

  void update(std::size_t index);
  // Waits until the updates of other ranks have been gathered.
  void finish();

 private:
  [[nodiscard]] View weights_of(const Unit& unit, const Range& range) const;
  void update_range(std::size_t index, const Range& range, UpdateRule rule);
  void update_matrix(std::size_t index, const Parameter& p);
  void gather_weights(std::size_t index);

  Builder& b_;
  Program& p_;
  std::vector<Op> gathers_;
};

}  // namespace assay::step
