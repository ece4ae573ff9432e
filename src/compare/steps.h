// Steps: two runs of a training job, matched step by step. What a run does before and after its
// steps is another question, with another answer.
#pragma once

#include <optional>
#include <span>

#include "compare/journal.h"
#include "compare/metric.h"
#include "compare/process.h"

namespace assay::compare {

// How many steps at the beginning are not steady yet: at least one where there are four.
std::size_t steps_to_skip(std::span<const StepValue> steps);

// The median of a run's steady steps, for tables.
double steady_step(std::span<const StepValue> steps);

struct StepMatch {
  std::int64_t steps = 0;  // in common, and steady in both
  double difference = 0;   // median of ln(b/a) over them
};
// Nothing when they have none in common.
std::optional<StepMatch> match_steps(std::span<const StepValue> a, std::span<const StepValue> b);

// Where the run's time went, from when the lines of its first and last step came. A program that
// keeps its output back until it ends has no such moments; then nothing is filled in.
void split_time(std::span<const StepValue> steps, double step_seconds,
                std::span<const OutputMoment> moments, ArmRun& run);
// The same from when its first and last step ended, in seconds from its start.
struct StepEnds {
  double first = 0;
  double last = 0;
};
void split_time_at(std::span<const StepValue> steps, double step_seconds, const StepEnds& ends,
                   ArmRun& run);

}  // namespace assay::compare
