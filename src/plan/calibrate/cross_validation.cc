#include "plan/calibrate/cross_validation.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"

namespace assay::plan {
namespace {

// Times of the rows of one project, and their memory, as predicted from the others.
void predict_unseen(std::span<const Row> rows, const Fitter& fitter, const std::string& project,
                    std::span<RowPrediction> predictions) {
  const auto is_left_out = [&](const Row& row) {
    return (has_time(row) || has_memory(row)) && row.project == project;
  };
  const Constants constants = fitter.fit_without(project);
  const bool says_memory = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return is_left_out(row) && has_memory(row);
  });
  const MemoryConstants memory =
      says_memory ? fit_memory_without(rows, project) : prior_memory_constants();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_left_out(rows[i])) continue;
    predictions[i] = predict_all(rows.subspan(i, 1), constants, memory, {}, {}).front();
    if (!says_memory) predictions[i].memory_gib.reset();
  }
}

void add_intervals(std::span<const Row> rows, const std::string& project,
                   std::span<const Residual> residuals, std::span<RowPrediction> predictions) {
  std::vector<Residual> others;
  for (const Residual& residual : residuals)
    if (residual.project != project) others.push_back(residual);
  const IntervalTable table = interval_table(others);
  std::vector<Row> seen_rows;
  for (const Row& row : rows)
    if (row.project != project) seen_rows.push_back(row);
  const Seen seen = seen_in(seen_rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!predictions[i].step_s || rows[i].project != project) continue;
    const ErrorInterval interval =
        interval_of(*predictions[i].work, table, seen, rows[i].assumed,
                    mfu_of(*predictions[i].work, *predictions[i].step_s));
    predictions[i].low = *predictions[i].step_s * interval.low;
    predictions[i].high = *predictions[i].step_s * interval.high;
  }
}

}  // namespace

std::vector<RowPrediction> cross_validate(std::span<const Row> rows, unsigned threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  const Fitter fitter(rows);
  const std::vector<std::string>& projects = fitter.projects();
  std::vector<RowPrediction> predictions(rows.size());
  {
    // Each project's predictions have separate places.
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < projects.size(); i = next++)
        predict_unseen(rows, fitter, projects[i], predictions);
    };
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  const std::vector<Residual> residuals = residuals_of(rows, predictions);
  for (const std::string& project : projects) add_intervals(rows, project, residuals, predictions);
  return predictions;
}

}  // namespace assay::plan
