#include "plan/calibrate/scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/statistics.h"
#include "base/units.h"
#include "plan/calibrate/fit.h"
#include "plan/model/memory.h"

namespace assay::plan {
namespace {

constexpr base::Bytes kBytesPerGib(std::int64_t{1} << 30);

ErrorSummary summary_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  ErrorSummary summary{.rows = errors.size()};
  for (const double error : errors) {
    summary.mean += error / static_cast<double>(errors.size());
    summary.worst = std::max(summary.worst, error);
  }
  summary.median = base::median(std::move(errors));
  return summary;
}

// A row that is scored.
struct Scored {
  double error = 0;
  bool inside = false;
};
using ScoredRows = std::vector<Scored>;

ErrorSummary summary_of(const ScoredRows& rows) {
  std::vector<double> errors;
  for (const Scored& row : rows) errors.push_back(row.error);
  return summary_of(std::move(errors));
}

double coverage_of(const ScoredRows& rows) {
  double inside = 0;
  for (const Scored& row : rows) inside += row.inside ? 1 : 0;
  return rows.empty() ? 0 : inside / static_cast<double>(rows.size());
}

KindScore kind_score(const std::map<std::string, ScoredRows>& projects) {
  KindScore score{.projects = projects.size()};
  std::vector<double> means;
  for (const auto& [project, rows] : projects) {
    means.push_back(summary_of(rows).mean);
    score.coverage += coverage_of(rows) / static_cast<double>(projects.size());
  }
  const ErrorSummary summary = summary_of(means);
  score.mean = summary.mean;
  score.median = summary.median;
  score.worst = summary.worst;
  return score;
}

void add_projects(std::span<const Row> rows, std::span<const RowPrediction> predictions,
                  Score& score) {
  std::map<std::tuple<std::string, bool, Generation>, ScoredRows> parts;
  std::map<std::string, ScoredRows> kinds[2];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowPrediction& made = predictions[i];
    if (!has_time(rows[i]) || !made.step_s) continue;
    const Work& work = rows[i].candidates.front();
    const double seconds = *rows[i].step_s;
    const Scored one{.error = std::abs(*made.step_s / seconds - 1),
                     .inside = seconds >= made.low && seconds <= made.high};
    const bool moe = work.shape.is_moe();
    parts[{rows[i].project, moe, work.card.generation}].push_back(one);
    kinds[moe ? 1 : 0][rows[i].project].push_back(one);
  }
  for (const auto& [key, scored] : parts) {
    const auto& [project, moe, generation] = key;
    score.projects.push_back({.project = project,
                              .mixtures = moe,
                              .generation = generation,
                              .time = summary_of(scored),
                              .coverage = coverage_of(scored)});
  }
  score.dense = kind_score(kinds[0]);
  score.mixtures = kind_score(kinds[1]);
}

}  // namespace

SoftwareClass class_of(const Row& row) {
  const Work& work = row.candidates.front();  // they differ in layout and micro-batch only
  return work.software.kind(work.shape.is_moe());
}

std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Constants& constants,
                                       const MemoryConstants& memory,
                                       const IntervalTable& intervals, const Seen& seen) {
  std::vector<RowPrediction> predictions;
  for (const Row& row : rows) {
    RowPrediction& prediction = predictions.emplace_back();
    const auto predicted = predict(row, constants);
    if (!predicted) continue;
    const ErrorInterval interval = interval_of(*predicted->work, intervals, seen, row.assumed,
                                               mfu_of(*predicted->work, predicted->step_s));
    prediction = {.work = predicted->work,
                  .step_s = predicted->step_s,
                  .low = predicted->step_s * interval.low,
                  .high = predicted->step_s * interval.high,
                  .memory_gib = memory_need(*predicted->work, memory).total() / kBytesPerGib};
  }
  return predictions;
}

Score score(std::span<const Row> rows, std::span<const RowPrediction> predictions) {
  std::vector<double> time;
  std::vector<double> memory;
  std::vector<std::string> order;
  std::unordered_map<std::string, std::vector<double>> by_source;
  double inside = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const RowPrediction& prediction = predictions[i];
    if (has_time(row) && prediction.step_s) {
      time.push_back(std::abs(*prediction.step_s / *row.step_s - 1));
      auto& of_source = by_source[row.source];
      if (of_source.empty()) order.push_back(row.source);
      of_source.push_back(time.back());
      if (*row.step_s >= prediction.low && *row.step_s <= prediction.high) ++inside;
    }
    if (has_memory(row) && prediction.memory_gib)
      memory.push_back(std::abs(*prediction.memory_gib / *row.memory_gib - 1));
  }
  Score score{.time = summary_of(time), .memory = summary_of(memory)};
  for (const std::string& source : order)
    score.sources.push_back({.source = source, .time = summary_of(by_source[source])});
  if (!time.empty()) score.coverage = inside / static_cast<double>(time.size());
  add_projects(rows, predictions, score);
  return score;
}

}  // namespace assay::plan
