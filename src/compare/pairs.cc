#include "compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.h"
#include "compare/series.h"

namespace assay::compare {
namespace {

constexpr std::size_t kLeastSteps = 4;

bool is_complete(const Block& block) {
  return std::find(block.runs.begin(), block.runs.end(), nullptr) == block.runs.end();
}

// The level of all arms together, so that warm-up detection cannot favour one.
double level_of(const Block& block) {
  double sum = 0;
  for (const ArmRun* run : block.runs) sum += std::log(run->value);
  return sum / static_cast<double>(block.runs.size());
}

std::size_t warm_up_of(const Experiment& experiment, const std::vector<Block>& blocks) {
  if (experiment.warm_up) {
    return std::min(static_cast<std::size_t>(*experiment.warm_up), blocks.size());
  }
  std::vector<double> levels;
  for (const Block& block : blocks) levels.push_back(level_of(block));
  return warm_up_count(levels);
}

void mark(const std::vector<HostMark>& marks, Block& block) {
  for (const HostMark& one : marks) {
    if (one.first_block > block.number || block.number > one.last_block) continue;
    block.marks.insert(block.marks.end(), one.what.begin(), one.what.end());
  }
}

std::size_t steps_to_skip(std::span<const StepValue> steps) {
  if (steps.size() < kLeastSteps) return 0;
  std::vector<double> logs;
  for (const StepValue& step : steps) logs.push_back(std::log(step.value));
  return std::max<std::size_t>(1, warm_up_count(logs));
}

}  // namespace

Blocks blocks_of(const Measured& measured) {
  std::map<std::int64_t, Block> by_number;
  for (const ArmRun& run : measured.runs) {
    Block& block = by_number[run.block];
    block.number = run.block;
    block.runs.resize(measured.experiment.runs_per_block());
    block.runs[run.arm] = &run;
  }
  Blocks blocks;
  for (auto& [number, block] : by_number) {
    if (!is_complete(block)) {
      ++blocks.cut_short;
      continue;
    }
    mark(measured.marks, block);
    blocks.complete.push_back(std::move(block));
  }
  const std::size_t warm_up = warm_up_of(measured.experiment, blocks.complete);
  for (std::size_t i = 0; i < warm_up; ++i) blocks.complete[i].warm_up = true;
  blocks.warm_up = static_cast<std::int64_t>(warm_up);
  return blocks;
}

std::vector<double> differences(const Blocks& blocks, std::size_t arm) {
  return differences(blocks, 0, arm);
}

std::vector<double> differences(const Blocks& blocks, std::size_t from, std::size_t arm) {
  std::vector<double> found;
  for (const Block& block : blocks.complete) {
    if (block.warm_up) continue;
    const ArmRun& a = *block.runs[from];
    const ArmRun& b = *block.runs[arm];
    if (a.steps.empty() || b.steps.empty()) {
      found.push_back(std::log(b.value / a.value));
    } else if (const auto match = match_steps(a.steps, b.steps)) {
      found.push_back(match->difference);
    }
  }
  return found;
}

double steady_step(std::span<const StepValue> steps) {
  std::vector<double> values;
  for (const StepValue& step : steps.subspan(steps_to_skip(steps))) values.push_back(step.value);
  return base::median(std::move(values));
}

std::optional<StepMatch> match_steps(std::span<const StepValue> a, std::span<const StepValue> b) {
  std::vector<double> logs;
  auto at_a = a.begin() + static_cast<std::ptrdiff_t>(steps_to_skip(a));
  auto at_b = b.begin() + static_cast<std::ptrdiff_t>(steps_to_skip(b));
  while (at_a != a.end() && at_b != b.end()) {
    if (at_a->step == at_b->step)
      logs.push_back(std::log(at_b++->value / at_a++->value));
    else if (at_a->step < at_b->step)
      ++at_a;
    else
      ++at_b;
  }
  if (logs.empty()) return std::nullopt;
  return StepMatch{static_cast<std::int64_t>(logs.size()), base::median(std::move(logs))};
}

}  // namespace assay::compare
