#include "store/metrics.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "store/database.h"
#include "store/run_row.h"
#include "store/statement.h"

namespace assay::store {
namespace {

// Short, because a writer of metrics retries and must not block its thread.
constexpr std::chrono::milliseconds kMetricBusyTimeout{1000};

MetricPoint point_at(const Statement& row, int column) {
  MetricPoint point{row.integer(column), {}};
  if (!row.is_null(column + 1)) point.value = row.real(column + 1);
  return point;
}

}  // namespace

base::Result<MetricWriter> MetricWriter::begin(Store& store, const std::string& run_uid) {
  Database& database = store.database();
  ASSAY_TRY_VOID(database.set_busy_timeout(kMetricBusyTimeout));
  ASSAY_TRY(const RunId run, run_with_uid(database, run_uid));
  ASSAY_TRY(Statement series, database.prepare("INSERT INTO metric_series (run, source, name, unit)"
                                               " VALUES (?1, ?2, ?3, ?4)"));
  ASSAY_TRY(Statement point,
            database.prepare("INSERT INTO metric_point (series, step, value) VALUES (?1, ?2, ?3)"
                             " ON CONFLICT DO UPDATE SET value = excluded.value"));
  return MetricWriter(database, run, std::move(series), std::move(point));
}

base::Result<std::int64_t> MetricWriter::next_source() {
  ASSAY_TRY(
      Statement last,
      database_->prepare("SELECT coalesce(max(source), 0) FROM metric_series WHERE run = ?1"));
  ASSAY_TRY_VOID(last.bind(run_));
  ASSAY_TRY_VOID(last.next_row());
  return last.integer(0) + 1;
}

base::Result<std::int64_t> MetricWriter::series_of(const Metric& metric, Begun& begun) {
  const auto known = begun.series.find(metric.name);
  if (known != begun.series.end()) return known->second;
  ASSAY_TRY_VOID(insert_series_.bind(run_, begun.source, metric.name, metric.unit));
  ASSAY_TRY_VOID(insert_series_.run());
  return begun.series[metric.name] = database_->last_insert_rowid();
}

base::Result<void> MetricWriter::insert(std::span<const MetricRow> rows, Begun& begun) {
  // Inside the transaction: another process of the run may begin at the same moment.
  if (begun.source == 0) {
    ASSAY_TRY(begun.source, next_source());
  }
  for (const MetricRow& row : rows) {
    for (const Metric& metric : row.values) {
      ASSAY_TRY(const std::int64_t id, series_of(metric, begun));
      std::optional<double> value;
      if (std::isfinite(metric.value)) value = metric.value;
      ASSAY_TRY_VOID(insert_point_.bind(id, row.step, value));
      ASSAY_TRY_VOID(insert_point_.run());
    }
  }
  return {};
}

base::Result<bool> MetricWriter::write(std::span<const MetricRow> rows) {
  Begun begun = begun_;  // a copy, so that a rollback leaves begun_ unchanged
  ASSAY_TRY(const bool written, write_unless_busy(*database_, [&] { return insert(rows, begun); }));
  if (written) begun_ = std::move(begun);
  return written;
}

base::Result<std::vector<MetricSeries>> load_metrics(Store& store, RunId run) {
  Database& database = store.database();
  ASSAY_TRY(const ReadTransaction snapshot, ReadTransaction::begin(database));
  ASSAY_TRY(Statement select,
            database.prepare("SELECT id, source, name, unit FROM metric_series WHERE run = ?1"
                             " ORDER BY source, id"));
  ASSAY_TRY(Statement points,
            database.prepare("SELECT step, value FROM metric_point WHERE series = ?1"
                             " ORDER BY step"));
  ASSAY_TRY_VOID(select.bind(run));
  std::vector<MetricSeries> list;
  std::vector<std::int64_t> ids;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    ids.push_back(row.integer(0));
    list.push_back({row.integer(1), row.text(2), row.text(3), {}});
  }));
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSAY_TRY_VOID(points.bind(ids[i]));
    ASSAY_TRY_VOID(
        points.each([&](const Statement& row) { list[i].points.push_back(point_at(row, 0)); }));
  }
  std::erase_if(list, [](const MetricSeries& series) { return series.points.empty(); });
  return list;
}

base::Result<std::vector<MetricPoint>> load_series(Store& store, RunId run, std::string_view name) {
  ASSAY_TRY(Statement select,
            store.database().prepare(
                "SELECT p.step, p.value FROM metric_point p JOIN metric_series s"
                " ON s.id = p.series WHERE s.run = ?1 AND s.source = 1 AND s.name = ?2"
                " ORDER BY p.step"));
  ASSAY_TRY_VOID(select.bind(run, name));
  std::vector<MetricPoint> points;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { points.push_back(point_at(row, 0)); }));
  return points;
}

base::Result<std::optional<MetricPoint>> last_point(Store& store, RunId run,
                                                    std::string_view name) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT step, value FROM metric_point WHERE series ="
                                     " (SELECT id FROM metric_series WHERE run = ?1 AND name = ?2"
                                     " ORDER BY source DESC LIMIT 1) ORDER BY step DESC LIMIT 1"));
  ASSAY_TRY_VOID(select.bind(run, name));
  std::optional<MetricPoint> point;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { point = point_at(row, 0); }));
  return point;
}

base::Json value_json(const std::string& unit, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  if (unit == kFlag) return *value != 0;
  const bool counts = unit == "bytes" || unit == "tokens";
  if (counts && std::abs(*value) < 9e15) return static_cast<std::int64_t>(*value);
  return *value;
}

base::Json row_json(const MetricRow& row) {
  base::Json json{{"step", row.step}};
  for (const Metric& metric : row.values) json[metric.name] = value_json(metric.unit, metric.value);
  return json;
}

std::vector<MetricRow> rows_of(std::span<const MetricSeries> series) {
  std::map<std::int64_t, MetricRow> by_step;
  for (const MetricSeries& one : series) {
    for (const MetricPoint& point : one.points) {
      MetricRow& row = by_step[point.step];
      row.step = point.step;
      row.values.push_back(
          {one.name, one.unit, point.value.value_or(std::numeric_limits<double>::quiet_NaN())});
    }
  }
  std::vector<MetricRow> rows;
  rows.reserve(by_step.size());
  for (auto& [step, row] : by_step) rows.push_back(std::move(row));
  return rows;
}

base::Result<void> write_parameters(Store& store, RunId run, const RunParameters& parameters) {
  if (parameters.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(store.database()));
  ASSAY_TRY(Statement insert,
            store.database().prepare("INSERT OR REPLACE INTO run_parameter (run, name, value)"
                                     " VALUES (?1, ?2, ?3)"));
  for (const auto& [name, value] : parameters) {
    ASSAY_TRY_VOID(insert.bind(run, name, value));
    ASSAY_TRY_VOID(insert.run());
  }
  return transaction.commit();
}

base::Result<RunParameters> load_parameters(Store& store, RunId run) {
  RunParameters parameters;
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT name, value FROM run_parameter WHERE run = ?1"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    parameters[std::string(row.text(0))] = std::string(row.text(1));
  }));
  return parameters;
}

}  // namespace assay::store
