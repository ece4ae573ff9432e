#include "compare/steps.h"

#include <algorithm>
#include <cmath>

#include "compare/series.h"

namespace assay::compare {
namespace {

constexpr std::size_t kFewSteps = 4;
// Lines came so much faster than steps can have: they had been held back.
constexpr double kHeldBack = 0.5;

std::vector<double> logs_of(std::span<const StepValue> steps) {
  std::vector<double> logs;
  for (const StepValue& step : steps) logs.push_back(std::log(step.value));
  return logs;
}

double arrival(std::span<const OutputMoment> moments, std::size_t offset) {
  const auto found =
      std::lower_bound(moments.begin(), moments.end(), offset,
                       [](const OutputMoment& m, std::size_t at) { return m.end < at; });
  return found == moments.end() ? moments.back().seconds : found->seconds;
}

}  // namespace

std::size_t steps_to_skip(std::span<const StepValue> steps) {
  if (steps.size() < kFewSteps) return 0;
  return std::max<std::size_t>(1, warm_up_count(logs_of(steps)));
}

double steady_step(std::span<const StepValue> steps) {
  std::vector<double> values;
  for (const StepValue& step : steps.subspan(steps_to_skip(steps))) values.push_back(step.value);
  return median_of(std::move(values));
}

std::optional<StepMatch> match_steps(std::span<const StepValue> a, std::span<const StepValue> b) {
  std::vector<double> logs;
  auto ours = a.begin() + static_cast<std::ptrdiff_t>(steps_to_skip(a));
  auto theirs = b.begin() + static_cast<std::ptrdiff_t>(steps_to_skip(b));
  while (ours != a.end() && theirs != b.end()) {
    if (ours->step == theirs->step)
      logs.push_back(std::log(theirs++->value / ours++->value));
    else if (ours->step < theirs->step)
      ++ours;
    else
      ++theirs;
  }
  if (logs.empty()) return std::nullopt;
  return StepMatch{static_cast<std::int64_t>(logs.size()), median_of(std::move(logs))};
}

void split_time(std::span<const StepValue> steps, double step_seconds,
                std::span<const OutputMoment> moments, ArmRun& run) {
  if (steps.empty() || moments.empty()) return;
  split_time_at(steps, step_seconds,
                {arrival(moments, steps.front().offset), arrival(moments, steps.back().offset)},
                run);
}

void split_time_at(std::span<const StepValue> steps, double step_seconds, const StepEnds& ends,
                   ArmRun& run) {
  double stepping = 0;
  for (const StepValue& step : steps.subspan(1)) stepping += step.value * step_seconds;
  if (ends.last - ends.first < kHeldBack * stepping) return;
  run.startup_s = std::max(0.0, ends.first - steps.front().value * step_seconds);
  run.after_s = std::max(0.0, run.wall_s - ends.last);
}

}  // namespace assay::compare
