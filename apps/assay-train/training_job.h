// The options of `assay train` as a job and a run folder. Both programs use it, so that neither
// refuses what the other accepts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "assay-train/options.h"
#include "base/result.h"
#include "control/rank_assignment.h"
#include "spec/job.h"

namespace assay::cli {

struct TrainingJob {
  std::string name;
  spec::JobSpec job;
  std::filesystem::path out;  // --out, or runs/NAME

  [[nodiscard]] std::int64_t ranks() const { return job.layout.ranks.value_or(1); }
};

// On CPUs (with --device cpu, or if the cluster's devices are CPUs), the number of ranks is given
// by the layout alone.
base::Result<TrainingJob> load_training_job(const TrainOptions& options);

// The place that a launcher assigned to this process, if it is one of several ranks; their number
// must match the job.
base::Result<std::optional<control::RankAssignment>> launcher_assignment(const TrainingJob& job);

}  // namespace assay::cli
