// Everything that measured rows say to the planner: what `assay plan --calibrate` makes of a table
// of rows and writes, and `assay plan --constants` reads in place of what the program has.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/calibrate/rows.h"
#include "plan/constants.h"
#include "plan/intervals.h"

namespace assay::plan {

struct Calibration {
  Constants constants;
  MemoryConstants memory;
  IntervalTable known_source;    // of predictions of the rows that were fitted
  IntervalTable unknown_source;  // of predictions of rows whose source was left out
  RangeTable ranges;
};

Calibration shipped_calibration();

// Fits once to all rows and once without each source. Fails when no row was measured and can be
// predicted. Memory's constants stay as shipped where no row says its memory.
base::Result<Calibration> calibrate(std::span<const Row> rows);

std::string to_json(const Calibration& calibration);
// `name` is the file's, for errors. Every key must be there and no other; constants must be within
// their bounds.
base::Result<Calibration> calibration_from_json(std::string_view text, const std::string& name);

}  // namespace assay::plan
