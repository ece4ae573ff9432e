#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::train {

double schedule(const spec::TrainSpec& train, std::int64_t step, std::int64_t steps) {
  if (step <= train.warmup_steps) {
    return static_cast<double>(step) / static_cast<double>(train.warmup_steps);
  }
  // Progress from 0, the last warm-up step, to 1, the last step.
  const auto span = static_cast<double>(std::max<std::int64_t>(1, steps - train.warmup_steps));
  const double at = std::min(1.0, static_cast<double>(step - train.warmup_steps) / span);
  const double last = train.final_fraction;
  switch (train.schedule) {
    case spec::Schedule::kCosine:
      return last + (1 - last) * 0.5 * (1 + std::cos(std::numbers::pi * at));
    case spec::Schedule::kLinear:
      return 1 + (last - 1) * at;
    case spec::Schedule::kWsd: {
      const auto decay = std::max(1.0, train.decay_fraction * static_cast<double>(steps));
      const auto left = static_cast<double>(std::max<std::int64_t>(0, steps - step));
      return left >= decay ? 1.0 : last + (1 - last) * left / decay;
    }
    case spec::Schedule::kConstant:
      break;
  }
  return 1.0;
}

}  // namespace assay::train
