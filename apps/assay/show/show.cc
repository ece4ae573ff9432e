// assay show [RUN] [--explain] [--metrics]: everything that was recorded about a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "assay/project.h"
#include "assay/show/print_run.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/resolve.h"
#include "lineage/graph/run_json.h"
#include "store/metrics.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

using Series = std::span<const store::MetricSeries>;

// The columns of the table by step.
constexpr const char* kColumns[] = {"loss",    "validation_loss", "gradient_norm",
                                    "seconds", "tokens_per_s",    "mfu",
                                    "mfu_6n",  "memory_bytes",    "watts"};

// Splits the series by source.
std::vector<Series> by_source(const std::vector<store::MetricSeries>& metrics) {
  std::vector<Series> sources;
  for (std::size_t first = 0; first < metrics.size();) {
    std::size_t end = first;
    while (end < metrics.size() && metrics[end].source == metrics[first].source) ++end;
    sources.emplace_back(metrics.data() + first, end - first);
    first = end;
  }
  return sources;
}

struct Summary {
  std::size_t points = 0;  // including those that are not numbers
  std::optional<double> first;
  std::optional<double> last;
  std::optional<double> median;
  std::optional<double> mean;
  std::optional<double> most;
};

Summary summary_of(const store::MetricSeries& series) {
  Summary summary{.points = series.points.size()};
  std::vector<double> values;
  for (const store::MetricPoint& point : series.points) {
    if (point.value) values.push_back(*point.value);
  }
  if (values.empty()) return summary;
  summary.first = series.points.front().value;
  summary.last = series.points.back().value;
  summary.most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  summary.mean = sum / static_cast<double>(values.size());
  summary.median = base::median(std::move(values));
  return summary;
}

std::string value_text(const store::MetricSeries& series, std::optional<double> value) {
  if (!value) return "—";
  if (series.name == "unix_s") return base::utc_text(static_cast<std::int64_t>(*value * 1e9));
  if (series.unit == "bytes") return base::to_text(base::Bytes(std::llround(*value)));
  if (series.unit == "fraction") return fmt::format("{:.1f} %", 100 * *value);
  if (series.unit == "tokens" || series.unit == "tokens/s") {
    return base::grouped(std::llround(*value));
  }
  return fmt::format("{:.5g}", *value);
}

std::string title(Series source, std::size_t sources) {
  std::int64_t first = source.front().points.front().step;
  std::int64_t last = first;
  for (const store::MetricSeries& series : source) {
    first = std::min(first, series.points.front().step);
    last = std::max(last, series.points.back().step);
  }
  const std::string which = sources > 1 ? fmt::format(" {}", source.front().source) : "";
  return fmt::format("metrics{} of steps {} to {}", which, base::grouped(first),
                     base::grouped(last));
}

const store::Metric* find(const store::MetricRow& row, const std::string& name) {
  for (const store::Metric& metric : row.values) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

// At most `most` of the rows, evenly chosen.
void print_row_table(const Session& session, Series source,
                     const std::vector<store::MetricRow>& rows, std::size_t most) {
  std::vector<const store::MetricSeries*> columns;
  std::vector<std::string> titles = {"step"};
  for (const char* name : kColumns) {
    for (const store::MetricSeries& series : source) {
      if (series.name != name) continue;
      columns.push_back(&series);
      titles.emplace_back(name);
    }
  }
  base::Table table(titles);
  const std::size_t every = std::max<std::size_t>(1, (rows.size() + most - 1) / most);
  for (std::size_t i = 0; i < rows.size(); i += every) {
    std::vector<std::string> cells = {base::grouped(rows[i].step)};
    for (const store::MetricSeries* column : columns) {
      const store::Metric* metric = find(rows[i], column->name);
      cells.push_back(metric == nullptr ? "" : value_text(*column, metric->value));
    }
    table.row(cells);
  }
  session.print(table);
  if (every == 1) return;
  session.print(fmt::format("one step in {} of {}; --json has them all\n", every,
                            base::grouped(static_cast<std::int64_t>(rows.size()))));
}

void print_metrics(const Session& session, const std::vector<store::MetricSeries>& metrics) {
  const std::vector<Series> sources = by_source(metrics);
  for (const Series source : sources) {
    base::Table table(
        {title(source, sources.size()), "first", "last", "median", "mean", "most", "unit"});
    table.align(6, base::Align::kLeft);
    for (const store::MetricSeries& series : source) {
      // A mean of points in time is meaningless.
      if (series.name == "unix_s" || series.unit == store::kFlag) continue;
      const Summary summary = summary_of(series);
      const auto text = [&](std::optional<double> value) { return value_text(series, value); };
      table.row({base::printable(series.name), text(summary.first), text(summary.last),
                 text(summary.median), text(summary.mean), text(summary.most),
                 base::printable(
                     series.unit == "bytes" || series.unit == "fraction" ? "" : series.unit)});
    }
    session.print("\n");
    session.print(table);
  }
}

base::Json metrics_summary_json(const std::vector<store::MetricSeries>& metrics) {
  base::Json list = base::Json::array();
  for (const store::MetricSeries& series : metrics) {
    const Summary summary = summary_of(series);
    const auto json = [&](std::optional<double> value) {
      return store::value_json(series.unit, value);
    };
    list.push_back({{"source", series.source},
                    {"name", series.name},
                    {"unit", series.unit},
                    {"points", summary.points},
                    {"first_step", series.points.front().step},
                    {"last_step", series.points.back().step},
                    {"first", json(summary.first)},
                    {"last", json(summary.last)},
                    {"median", base::or_null(summary.median)},
                    {"mean", base::or_null(summary.mean)},
                    {"most", json(summary.most)}});
  }
  return list;
}

void print_metric_rows(const Session& session, store::RunId run,
                       const std::vector<store::MetricSeries>& metrics, std::size_t rows) {
  base::Json list = base::Json::array();
  for (const Series source : by_source(metrics)) {
    const std::vector<store::MetricRow> all = store::rows_of(source);
    base::Json row_list = base::Json::array();
    if (session.json) {
      for (const store::MetricRow& row : all) row_list.push_back(store::row_json(row));
    } else if (!session.quiet) {
      print_row_table(session, source, all, rows);
    }
    list.push_back({{"source", source.front().source}, {"rows", std::move(row_list)}});
  }
  if (metrics.empty()) session.print(fmt::format("run {} has no metrics\n", run));
  session.print_json(base::Json{{"run", run}, {"sources", std::move(list)}});
}

constexpr std::size_t kFiles = 40;

struct ShowOptions {
  std::string run = "last";
  bool explain = false;
  bool metrics = false;
};

base::Result<base::ExitCode> show(const Session& session, const ShowOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::RunId id, lineage::resolve_run(store, options.run));
  ASSAY_TRY(const std::vector<store::MetricSeries> metrics, store::load_metrics(store, id));
  if (options.metrics) {
    print_metric_rows(session, id, metrics, kFiles);
    return base::ExitCode::kYes;
  }
  ASSAY_TRY(const store::RunRecord run, store::load_run(store, id));
  ASSAY_TRY(const store::RunParameters parameters, store::load_parameters(store, id));
  if (session.json) {
    base::Json document = lineage::run_json(run);
    document["parameters"] = parameters;
    document["metrics"] = metrics_summary_json(metrics);
    session.print_json(document);
    return base::ExitCode::kYes;
  }
  print_run(session, run, directory, kFiles);
  if (!parameters.empty()) {
    base::Table table({"parameter", "value"});
    table.align(1, base::Align::kLeft);
    for (const auto& [name, value] : parameters) {
      table.row({base::printable(name), cell_text(value, 80)});
    }
    session.print("\n");
    session.print(table);
  }
  print_metrics(session, metrics);
  if (options.explain) print_rules(session, run, directory, kFiles);
  if (run.output_count > 0) {
    session.next(fmt::format("assay dag {}", id));
  } else {
    session.next("assay log");
  }
  return base::ExitCode::kYes;
}

}  // namespace

Verb show_verb(const Session& session) {
  const auto given = std::make_shared<ShowOptions>();
  return {.name = "show",
          .description = "show everything recorded about a run",
          .examples = {"assay show", "assay show last --json", "assay show 2 --explain"},
          .arguments = {{"RUN", "number, last, @STAGE, name, label or uid; default: last",
                         &given->run, false, [] { return std::vector<std::string>{"last"}; }}},
          .options = {{"--explain", "why files were kept or left out", &given->explain},
                      {"--metrics", "its metrics, step by step", &given->metrics}},
          .action = [&session, given] { return show(session, *given); }};
}

}  // namespace assay::cli
