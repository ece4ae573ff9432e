// SkippedSteps: a step whose gradients are not finite does not change the weights. One may be bad
// luck; many in a row mean that the weights are of no use any more. All ranks of a job count the
// same steps.
#pragma once

#include <cstdint>

namespace assay::train {

class SkippedSteps {
 public:
  // `first_step`: the number of steps before the first that is counted.
  SkippedSteps(std::int64_t most_in_a_row, std::int64_t first_step)
      : most_(most_in_a_row), changed_(first_step) {}

  void counts(std::int64_t step, bool skipped) {
    in_a_row_ = skipped ? in_a_row_ + 1 : 0;
    if (skipped) return;
    changed_ = step;
    any_finite_ = true;
  }

  // Up to the last step.
  [[nodiscard]] std::int64_t in_a_row() const { return in_a_row_; }
  [[nodiscard]] bool too_many() const { return in_a_row_ >= most_; }
  // The weights are those after this step.
  [[nodiscard]] std::int64_t weights_of() const { return changed_; }
  [[nodiscard]] bool any_finite() const { return any_finite_; }

 private:
  std::int64_t most_;
  std::int64_t changed_;
  std::int64_t in_a_row_ = 0;
  bool any_finite_ = false;
};

}  // namespace assay::train
