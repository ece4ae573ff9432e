// What one rank holds of a model's parameters once tensor, pipeline and expert parallelism have cut
// it, and in which units (blocks, and what lies before and after them) ranks exchange it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/job.h"
#include "spec/parameters.h"

namespace assay::plan {

struct RankParameterGroup {
  spec::ParameterGroup part;    // the rank's tensors: shape and count after the cuts
  std::int64_t whole_each = 0;  // elements of one tensor before tensor parallelism cut it

  [[nodiscard]] bool cut() const { return part.elements_each() != whole_each; }
};

// Tensors that ranks exchange together: how many of each group. Equal units are listed once.
struct ExchangeUnit {
  std::vector<std::int64_t> tensors;  // by the position in RankParameters::groups
  std::int64_t count = 1;             // units like this on the rank
};

struct RankParameters {
  std::int64_t stage = 0;
  std::vector<RankParameterGroup> groups;
  std::vector<ExchangeUnit> units;

  [[nodiscard]] std::int64_t elements() const;
};

// A rank in that stage of the pipeline.
RankParameters parameters_of_stage(const spec::JobSpec& job, std::int64_t stage);

// In the first or the last stage, whichever holds more: one has the embeddings, the other the head.
RankParameters parameters_of_rank(const spec::JobSpec& job);

}  // namespace assay::plan
