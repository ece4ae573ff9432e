// Pairs: what a journal's runs become. A block in which every arm ran is a row; the logarithm of
// the ratio of an arm to the baseline is a difference.
#pragma once

#include <cstdint>
#include <vector>

#include "compare/journal.h"

namespace assay::compare {

struct Block {
  std::int64_t number = 0;
  std::vector<const ArmRun*> runs;  // by arm
  bool warm_up = false;
  std::vector<std::string> marks;  // what the host did
};

struct Blocks {
  std::vector<Block> complete;  // in order; the first of them may be warm-up
  std::int64_t warm_up = 0;     // blocks
  std::int64_t cut_short = 0;   // blocks in which an arm is missing
};
// Points into `measured`.
Blocks blocks_of(const Measured& measured);

// ln(arm / baseline) of every block after warm-up; where runs have steps, of those that both have.
std::vector<double> differences(const Blocks& blocks, std::size_t arm);

}  // namespace assay::compare
