#include "assay-train/eta.h"

#include <algorithm>

namespace assay::cli {

void Eta::stepped(std::int64_t step, double seconds) {
  // The first step warms up caches, clocks and libraries and says little about the others.
  const bool warm = step > first_ + 1;
  step_seconds_ = warm ? 0.9 * step_seconds_ + 0.1 * seconds : seconds;
  step_ = step;
}

double Eta::seconds_left() const {
  const std::int64_t steps = std::max<std::int64_t>(0, last_ - step_);
  double left = step_seconds_ * static_cast<double>(steps);
  if (validate_every_ > 0) {
    const std::int64_t validations = last_ / validate_every_ - step_ / validate_every_;
    left += validation_seconds_ * static_cast<double>(std::max<std::int64_t>(0, validations));
  }
  return left;
}

}  // namespace assay::cli
