// Metrics that runs recorded in the project's store (stored:NAME). Commands that record a run
// (`assay run`, `assay train`) add one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/metric.h"
#include "store/store.h"

namespace assay::compare {

class StoredMetrics {
 public:
  // Opens the store at or above the folder.
  static base::Result<StoredMetrics> open(const std::filesystem::path& directory);

  // Runs recorded after this call belong to the next run of the experiment.
  base::Result<void> remember();
  // The series, by step, of the newest run since remember(); fails if there is no such run or
  // series.
  base::Result<std::vector<StepValue>> steps(const std::string& name);
  // When that run's steps ended, in seconds since 1970; empty if it did not record that.
  base::Result<std::vector<StepValue>> step_ends();

 private:
  explicit StoredMetrics(store::Store store) : store_(std::move(store)) {}
  base::Result<std::int64_t> newest();

  store::Store store_;
  std::int64_t before_ = 0;
};

}  // namespace assay::compare
