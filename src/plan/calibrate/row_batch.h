// How many sequences a row's steps read, and in which micro-batches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/calibrate/row_fields.h"
#include "plan/model/work.h"

namespace assay::plan {

// Of a step on all ranks: by the notes, or by tokens per second times seconds. What a step took is
// used for nothing else.
std::optional<double> row_sequences(const RowFields& row);

struct RowBatches {
  std::vector<Batch> candidates;  // of one rank
  std::string assumed;            // what the row does not say
  bool unknown = false;           // nothing implies how many tokens a step reads
  bool by_rate = false;           // likewise, but tokens per second can be compared
  bool micro_unknown = false;     // a guess that memory depends on
};

RowBatches row_batches(const RowFields& row, const Shape& shape, Framework framework,
                       const Degrees& degrees, const std::optional<double>& sequences);

}  // namespace assay::plan
