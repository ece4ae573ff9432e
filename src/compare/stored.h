// What the runs of a project measured of themselves, for metrics that are found in the store: a
// command that records a run (`assay run`, `assay train`) leaves one more there.
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
  // The store at or above the folder.
  static base::Result<StoredMetrics> open(const std::filesystem::path& directory);

  // Runs that begin from now on are the next run's.
  base::Result<void> remember();
  // The quantity, step by step, of the newest run since; an error when there is no such run or it
  // has no such quantity.
  base::Result<std::vector<StepValue>> steps(const std::string& name);
  // When the steps of that run ended, in seconds since 1970; empty where it did not say.
  base::Result<std::vector<StepValue>> step_ends();

 private:
  explicit StoredMetrics(store::Store store) : store_(std::move(store)) {}
  base::Result<std::int64_t> newest();

  store::Store store_;
  std::int64_t before_ = 0;
};

}  // namespace assay::compare
