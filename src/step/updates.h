// Updates: what the optimizer does with complete gradients and their norm. Each rank updates what
// it keeps the optimizer's state of; for one rank that is everything.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"

namespace assay::step {

class Updates {
 public:
  explicit Updates(Builder& b) : b_(b), p_(b.program()) {}

  void update(std::size_t index);
  // The others' updates are there as well.
  void finish();

 private:
  [[nodiscard]] View weights_of(const Unit& unit, const Range& range) const;
  void update_range(std::size_t index, const Range& range, Group group);
  void update_matrix(std::size_t index, const Parameter& p);
  void gather_weights(std::size_t index);

  Builder& b_;
  Program& p_;
  std::vector<Op> gathers_;
};

}  // namespace assay::step
