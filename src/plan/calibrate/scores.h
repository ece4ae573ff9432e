// Predictions of rows, and their errors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/model/constants.h"
#include "plan/model/intervals.h"

namespace assay::plan {

// Empty where the row gives no work.
struct RowPrediction {
  const Work* work = nullptr;  // of the row's candidates
  std::optional<double> step_s;
  double low = 0;  // the 80 % interval
  double high = 0;
  std::optional<double> memory_gib;
};

SoftwareClass class_of(const Row& row);  // which must have work

// One per row, in their order. Predictions point into rows.
std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Constants& constants,
                                       const MemoryConstants& memory,
                                       const IntervalTable& intervals, const Seen& seen);

// |predicted / measured - 1|.
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0;
  double median = 0;
  double worst = 0;
};

struct SourceScore {
  std::string source;
  ErrorSummary time;
};

// Of a project's dense models or mixtures, on one generation of cards.
struct ProjectScore {
  std::string project;
  bool mixtures = false;
  Generation generation = Generation::kHopper;
  ErrorSummary time;
  double coverage = 0;
};

// Of dense models or of mixtures, with the same weight for every project.
struct KindScore {
  std::size_t projects = 0;
  double mean = 0;  // of projects' means
  double median = 0;
  double worst = 0;
  double coverage = 0;
};

// Flagged rows are not scored, nor those that have no work or were not measured.
struct Score {
  ErrorSummary time;
  std::vector<SourceScore> sources;  // in their order of appearance
  double coverage = 0;               // share of measured times within their intervals
  ErrorSummary memory;
  std::vector<ProjectScore> projects;  // by project, kind and generation
  KindScore dense;
  KindScore mixtures;
};

Score score(std::span<const Row> rows, std::span<const RowPrediction> predictions);

}  // namespace assay::plan
