// ReportedRun: everything known about one run of the store, from which its part of a page
// (run_part.h), its trace and its latest values (run_exports.h) are made. Information
// from other modules (lineage, plan, prices) is passed in as plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plot/axis.h"
#include "plot/flow.h"
#include "store/metrics.h"
#include "store/ranks.h"
#include "store/run.h"

namespace assay::report {

// The inputs and outputs of the run that are shown.
struct LineageView {
  std::vector<plot::FlowBox> inputs;
  std::vector<plot::FlowBox> outputs;
};

// The plan's prediction for the run.
struct Predicted {
  std::string of;                  // "llama3-8b-h200 on NVIDIA H200"
  std::string source;              // "planned when the run started, 2026-11-16 07:00:00 UTC"
  double step_s = 0;               // here and below, 0: not predicted
  plot::Interval step_interval_s;  // 80 %
  double tokens_per_s = 0;
  double mfu = 0;
  double mfu_6n = 0;
  double memory_bytes = 0;
  std::vector<std::pair<std::string, double>> parts_s;
};

// A price for machines with the run's GPUs.
struct Offer {
  std::string provider;
  std::string name;
  std::string market;
  std::string date;
  double low_per_hour = 0;  // for all devices of the run, in dollars
  double high_per_hour = 0;
  std::string source;
};

struct Rates {
  std::optional<double> dollars_per_hour;  // --price
  std::vector<Offer> offers;               // from the presets, if no price was given
  std::optional<double> grams_per_kwh;     // --carbon
};

struct ReportedRun {  // NOLINT(bugprone-exception-escape): as store::Context
  store::RunRecord record;
  std::string command;            // quoted for a shell
  std::int64_t seen_unix_ns = 0;  // when the store was read
  std::vector<store::MetricSeries> metrics;
  std::vector<store::RankRecord> ranks;  // of a training run with several
  LineageView lineage;
  std::optional<Predicted> predicted;
  std::string not_predicted;  // why there is no prediction, or only one of memory
  Rates rates;
};

// The series of the first process that measured this quantity; null if none did.
const store::MetricSeries* series_of(const ReportedRun& run, std::string_view name,
                                     std::int64_t source = 0);

// Statistics of the finite values of a series.
struct SeriesSummary {
  std::int64_t count = 0;  // finite values
  std::int64_t missing = 0;
  double least = 0;
  double most = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;
  double mean = 0;
  double sum = 0;
  double last = 0;
};
std::optional<SeriesSummary> summary_of(const store::MetricSeries* series);

// When steps ended, in seconds since the run began; empty if the run did not record it.
struct StepEnd {
  std::int64_t step = 0;
  double at_s = 0;
  double took_s = 0;  // 0: unknown
};
std::vector<StepEnd> step_ends(const ReportedRun& run);

// How long the run took; while it is running, until the store was read.
double ran_s(const ReportedRun& run);

// The unit for times of a run of this length.
struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit run_unit(double seconds);

// The few values that would flatten a chart of all others: more than five times as far above the
// median as the 99th percentile, and several times the median.
struct Outliers {
  double above = std::numeric_limits<double>::infinity();  // values above this are outliers
  std::int64_t count = 0;
  std::int64_t step = 0;  // step with the largest
  double largest = 0;
};
Outliers outliers_of(const store::MetricSeries& series);

// The checkpoints that the run left behind, by step.
struct CheckpointLeft {
  std::int64_t step = 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;
};
std::vector<CheckpointLeft> checkpoints_of(const store::RunRecord& record);

// Measured energy of all processes, in joules.
std::optional<double> joules_of(const ReportedRun& run);

}  // namespace assay::report
