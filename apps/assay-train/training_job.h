// What `assay train` is to train: its options as a job and a run folder. Both programs use it, so
// that what one of them accepts the other does not refuse.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "assay-train/options.h"
#include "base/result.h"
#include "control/place.h"
#include "spec/job.h"

namespace assay::cli {

struct TrainingJob {
  std::string name;
  spec::JobSpec job;
  std::filesystem::path out;  // --out, or runs/NAME

  [[nodiscard]] std::int64_t ranks() const { return job.layout.ranks.value_or(1); }
};

// On CPUs a job has as many ranks as its layout says: with --device cpu, and where the cluster's
// devices are CPUs.
base::Result<TrainingJob> load_training_job(const TrainOptions& options);

// The place that whoever started this process gave it, if it is one of several ranks; they must be
// as many as the job has.
base::Result<std::optional<control::Place>> place_among_ranks(const TrainingJob& job);

}  // namespace assay::cli
