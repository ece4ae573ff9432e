// What a run reports about itself. Metrics are numbers by step: the program inside the run writes
// them (MetricWriter); `assay show` and reports read them. Parameters are its settings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

struct Metric {
  std::string name;  // "tokens_per_s"
  std::string unit;  // "tokens/s"; kFlag for true or false; may be empty
  double value = 0;
};
inline constexpr const char* kFlag = "flag";  // 0 or 1

// What was measured at one step; a step may have several rows.
struct MetricRow {
  std::int64_t step = 0;
  std::vector<Metric> values;
};

// Writes metrics of one run. Each writer is a separate source (MetricSeries::source).
class MetricWriter {
 public:
  // The run must have begun. The Store must outlive the writer and stay where it is.
  static base::Result<MetricWriter> begin(Store& store, const std::string& run_uid);

  // In one transaction. False: other processes kept the store locked and nothing was written; try
  // again. If a step has the same quantity twice, the last value counts.
  base::Result<bool> write(std::span<const MetricRow> rows);

 private:
  // What this writer has already inserted.
  struct Begun {
    std::int64_t source = 0;  // assigned with the first row
    std::map<std::string, std::int64_t, std::less<>> series;
  };

  MetricWriter(Database& database, RunId run, Statement insert_series, Statement insert_point)
      : database_(&database),
        run_(run),
        insert_series_(std::move(insert_series)),
        insert_point_(std::move(insert_point)) {}
  base::Result<void> insert(std::span<const MetricRow> rows, Begun& begun);
  base::Result<std::int64_t> next_source();
  base::Result<std::int64_t> series_of(const Metric& metric, Begun& begun);

  Database* database_;
  RunId run_;
  Begun begun_;
  Statement insert_series_;
  Statement insert_point_;
};

struct MetricPoint {
  std::int64_t step = 0;
  std::optional<double> value;  // nothing: it was measured but is not finite
};

struct MetricSeries {
  std::int64_t source = 1;  // 1, 2, 3, … in the order in which the writers wrote first
  std::string name;
  std::string unit;
  std::vector<MetricPoint> points;  // by step
};

// Ordered by source, then by when the quantity first appeared.
base::Result<std::vector<MetricSeries>> load_metrics(Store& store, RunId run);
// One quantity of a run's first source, for comparing two runs step by step; empty if there is
// none.
base::Result<std::vector<MetricPoint>> load_series(Store& store, RunId run, std::string_view name);
// The newest point of one quantity, from the newest source.
base::Result<std::optional<MetricPoint>> last_point(Store& store, RunId run, std::string_view name);

// Metrics as JSON, with the same keys whether they come from a running trainer or from the store.

// {"step": 3, "loss": 4.5, …}: flags as true or false, counts as whole numbers, and null for
// numbers that are not finite.
base::Json row_json(const MetricRow& row);
base::Json value_json(const std::string& unit, std::optional<double> value);

// The series of one source as rows by step.
std::vector<MetricRow> rows_of(std::span<const MetricSeries> series);

// Names and values. Table `run_parameter`.
using RunParameters = std::map<std::string, std::string>;

// In one transaction; an existing parameter gets the new value.
base::Result<void> write_parameters(Store& store, RunId run, const RunParameters& parameters);
base::Result<RunParameters> load_parameters(Store& store, RunId run);

}  // namespace assay::store
