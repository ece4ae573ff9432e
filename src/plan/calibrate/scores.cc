#include "plan/calibrate/scores.h"

#include <cmath>
#include <cstdint>
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
  for (const double error : errors) summary.mean += error / static_cast<double>(errors.size());
  summary.median = base::median(std::move(errors));
  return summary;
}

}  // namespace

SoftwareClass class_of(const Row& row) {
  const Work& work = row.candidates.front();  // they differ in layout and micro-batch only
  return work.software.kind(work.shape.is_moe());
}

std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Constants& constants,
                                       const MemoryConstants& memory,
                                       const IntervalTable& intervals) {
  std::vector<RowPrediction> predictions;
  for (const Row& row : rows) {
    RowPrediction& prediction = predictions.emplace_back();
    const auto predicted = predict(row, constants);
    if (!predicted) continue;
    const ErrorInterval& interval = intervals.of(class_of(row));
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
  return score;
}

}  // namespace assay::plan
