#include "compare/stored_metrics.h"

#include <fmt/format.h>

#include "store/metrics.h"
#include "store/run_reader.h"

namespace assay::compare {
namespace {

constexpr const char* kStepEnds = "unix_s";  // written by assay train

}  // namespace

base::Result<StoredMetrics> StoredMetrics::open(const std::filesystem::path& directory) {
  ASSAY_TRY(const auto found, store::find(directory));
  ASSAY_TRY(store::Store store, store::Store::open(found ? *found : store::location_in(directory),
                                                   store::StoreProgram{}, store::Access::kRead));
  return StoredMetrics(std::move(store));
}

base::Result<std::int64_t> StoredMetrics::newest() {
  ASSAY_TRY(const std::vector<store::RunRecord> runs, store::list_runs(store_, {.limit = 1}));
  return runs.empty() ? std::int64_t{0} : static_cast<std::int64_t>(runs.front().id);
}

base::Result<void> StoredMetrics::remember() {
  ASSAY_TRY(before_, newest());
  return {};
}

base::Result<std::vector<StepValue>> StoredMetrics::step_ends() {
  ASSAY_TRY(const std::int64_t run, newest());
  ASSAY_TRY(const auto points, store::load_series(store_, run, kStepEnds));
  std::vector<StepValue> ends;
  for (const store::MetricPoint& point : points) {
    if (point.value && run > before_) ends.push_back({point.step, *point.value, 0});
  }
  return ends;
}

base::Result<std::vector<StepValue>> StoredMetrics::steps(const std::string& name) {
  ASSAY_TRY(const std::int64_t run, newest());
  if (run <= before_) {
    return base::fail(
        base::unfit_error("",
                          fmt::format("'stored:{}': the command recorded no run in {}", name,
                                      store_.location().project.string()),
                          "run it with assay run or assay train"));
  }
  ASSAY_TRY(const std::vector<store::MetricPoint> points, store::load_series(store_, run, name));
  std::vector<StepValue> steps;
  for (const store::MetricPoint& point : points) {
    if (point.value) steps.push_back({point.step, *point.value, 0});
  }
  if (steps.empty()) {
    return base::fail(
        base::unfit_error("", fmt::format("'stored:{}': run {} has no such metric", name, run),
                          "assay show --metrics lists its metrics"));
  }
  return steps;
}

}  // namespace assay::compare
