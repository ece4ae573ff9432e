// Published measurements of steps, as rows of a CSV table: read, and turned into work that
// the model can predict. What a row leaves out is taken from what is published about its model
// and card, or from the most probable; what is nonsense gives the row a reason instead of work.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

struct Row {
  std::string id;
  std::string source;
  std::string project;               // a repository or paper, however many sources it has
  std::optional<double> step_s;      // measured
  std::optional<double> memory_gib;  // likewise
  // Says of itself that it measures something else than a step (see parse_rows()), is doubted by
  // its table, or does not say how much a step reads. It is predicted, and neither fitted nor
  // scored.
  bool flagged = false;
  // Says tokens per second and not how many a step reads: step_s is of a batch that was taken, and
  // its memory says nothing.
  bool by_rate = false;
  // The row leaves out what its time depends on, and the most probable was taken.
  bool assumed = false;
  // Several where the row does not say its layout or micro-batch: the one that takes the least time
  // per sequence is predicted.
  std::vector<Work> candidates;
  std::string reason;  // why there is no work, or what was assumed; may be empty
};

// Columns by their names, in any order and case; `name` is the file's, for errors. Fails when the
// table cannot be read as one or has no column that a prediction needs; a bad row does not fail it.
base::Result<std::vector<Row>> parse_rows(std::string_view csv, const std::string& name);

// The candidate that is predicted.
struct FastestCandidate {
  double step_s = 0;
  const Work* work = nullptr;
};
std::optional<FastestCandidate> predict(const Row& row, const Constants& constants);

}  // namespace assay::plan
