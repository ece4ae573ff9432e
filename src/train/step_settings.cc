#include "train/step_settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/job.h"

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

StepSettings settings_of_step(const spec::TrainSpec& t, std::int64_t step, std::int64_t steps,
                              std::int64_t counted_targets) {
  const double fraction = schedule(t, step, steps);
  return {.step = step,
          .learning_rate = t.learning_rate * fraction,
          .muon_learning_rate = t.muon_learning_rate * fraction,
          .muon_momentum = t.muon_momentum,
          .beta1 = t.beta1,
          .beta2 = t.beta2,
          .epsilon = t.epsilon,
          .weight_decay = t.weight_decay,
          .clip = t.clip,
          .z_loss = t.z_loss,
          .counted_targets = static_cast<double>(std::max<std::int64_t>(counted_targets, 1)),
          .balance_loss = t.balance_loss,
          .router_z_loss = t.router_z_loss,
          .balance_rate = t.balance_rate};
}

AdamwNumbers adamw_numbers(const StepSettings& s, bool decays) {
  const auto steps = static_cast<double>(s.step);
  return {.beta1 = static_cast<float>(s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .rate = static_cast<float>(s.learning_rate),
          .correct1 = static_cast<float>(1.0 / (1.0 - std::pow(s.beta1, steps))),
          .correct2 = static_cast<float>(1.0 / (1.0 - std::pow(s.beta2, steps))),
          .epsilon = static_cast<float>(s.epsilon),
          .keep = decays ? static_cast<float>(1.0 - s.learning_rate * s.weight_decay) : 1.0F};
}

MuonNumbers muon_numbers(const StepSettings& s, std::int64_t rows, std::int64_t cols) {
  // Tall matrices get a larger step per singular value, so that all outputs change equally.
  const double tall = std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols));
  return {.beta = static_cast<float>(s.muon_momentum),
          .rate = static_cast<float>(s.muon_learning_rate * std::sqrt(tall)),
          .keep = static_cast<float>(1.0 - s.muon_learning_rate * s.weight_decay)};
}

}  // namespace assay::train
