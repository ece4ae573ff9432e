// Turns runs into paired differences. A block in which every arm ran yields one pair per arm; the
// logarithm of an arm's value over the baseline's is a difference. Training jobs are paired step by
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/records.h"

namespace assay::compare {

struct Block {
  std::int64_t number = 0;
  std::vector<const ArmRun*> runs;  // by arm
  bool warm_up = false;
  std::vector<std::string> marks;  // host problems
};

struct Blocks {
  std::vector<Block> complete;  // in order; the first of them may be warm-up
  std::int64_t warm_up = 0;     // blocks
  std::int64_t cut_short = 0;   // blocks in which an arm is missing
};
// Points into `measured`.
Blocks blocks_of(const Measured& measured);

// ln(arm / baseline) for every block after warm-up; if runs have steps, over the steps common to
// both, leaving out blocks without common steps.
std::vector<double> differences(const Blocks& blocks, std::size_t arm);
// The same against any other arm.
std::vector<double> differences(const Blocks& blocks, std::size_t from, std::size_t arm);

// The median of a run's steps without warm-up, which is at least the first step if there are four
// or more.
double steady_step(std::span<const StepValue> steps);

struct StepMatch {
  std::int64_t steps = 0;  // in both runs, and steady in both
  double difference = 0;   // median of ln(b/a) over them
};
// Nothing if they have none in common.
std::optional<StepMatch> match_steps(std::span<const StepValue> a, std::span<const StepValue> b);

}  // namespace assay::compare
