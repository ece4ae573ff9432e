// Reads published measurements of steps from a CSV table and turns each row into Work that the
// model can predict. Values that a row omits are taken from what is published about its model and
// card, or the most probable value is assumed. A row with invalid values gets a reason instead of
// work.
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
  std::optional<double> memory_gib;  // likewise; none where the micro-batch is not known
  bool memory_counted = true;        // by the allocator: constants may be fitted to it
  // The row's notes say that it measured something other than a step (see parse_rows()), its table
  // has a `doubt`, or its batch is unknown. It is predicted, but neither fitted nor scored.
  // Rows with tokens per second and no batch are not flagged (by_rate).
  bool flagged = false;
  // The row has tokens per second but no batch: step_s is that of an assumed batch, and its memory
  // is not used.
  bool by_rate = false;
  // The row omits something that its time depends on, and the most probable value was assumed.
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
