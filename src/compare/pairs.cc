#include "compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compare/series.h"
#include "compare/steps.h"

namespace assay::compare {
namespace {

bool is_complete(const Block& block) {
  return std::find(block.runs.begin(), block.runs.end(), nullptr) == block.runs.end();
}

// All arms together, so that it says nothing about any of them.
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
  std::vector<double> found;
  for (const Block& block : blocks.complete) {
    if (block.warm_up) continue;
    const ArmRun& a = *block.runs[0];
    const ArmRun& b = *block.runs[arm];
    if (a.steps.empty() || b.steps.empty()) {
      found.push_back(std::log(b.value / a.value));
    } else if (const auto match = match_steps(a.steps, b.steps)) {
      found.push_back(match->difference);
    }
  }
  return found;
}

}  // namespace assay::compare
