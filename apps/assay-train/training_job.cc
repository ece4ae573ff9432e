#include "assay-train/training_job.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/error.h"
#include "base/process/environment.h"
#include "spec/load.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::cli {

namespace {

// Of options that need or exclude each other; and that there is a checkpoint to start from.
base::Result<void> check_start(const TrainOptions& options) {
  const bool resumes = options.resume || options.resume_or_start;
  if ((options.new_data || options.new_optimizer) && !resumes) {
    return base::fail(base::usage_error(
        options.new_data ? "train --new-data" : "train --new-optimizer",
        "is for a run that is resumed", "add --resume; a new run reads what its job says"));
  }
  if (options.from.empty()) return {};
  if (options.resume) {
    return base::fail(base::usage_error("train --from", "starts a new run, --resume continues one",
                                        "leave one of them out"));
  }
  return checkpoint::open_newest(options.from).transform([](const auto&) {});
}

}  // namespace

base::Result<TrainingJob> load_training_job(const TrainOptions& options) {
  ASSAY_TRY_VOID(check_start(options));
  spec::LoadOptions how{.overrides = options.sets,
                        .ranks_from_layout = options.device == "cpu",
                        .cpu_ranks_from_layout = options.device == "auto"};
  auto loaded = spec::load(options.job, how);
  if (!loaded) {
    base::Error error = std::move(loaded).error();
    how.ranks_from_layout = true;
    if (options.device == "auto" && spec::load(options.job, how)) {
      error.hint += ", or --device cpu trains any layout on CPUs";
    }
    return base::fail(std::move(error));
  }
  auto* job = std::get_if<spec::JobSpec>(&loaded->spec);
  if (job == nullptr) {
    return base::fail(base::usage_error(options.job, "is not a job",
                                        "a job has a [model] and a [batch] or [train]"));
  }
  return TrainingJob{.name = loaded->name,
                     .job = std::move(*job),
                     .out = options.out.empty() ? std::filesystem::path("runs") / loaded->name
                                                : std::filesystem::path(options.out)};
}

base::Result<std::optional<control::RankAssignment>> launcher_assignment(const TrainingJob& job) {
  ASSAY_TRY(auto assignment,
            control::find_rank_assignment(base::Environment::from_current().values()));
  if (!assignment || assignment->ranks == 1) return std::nullopt;
  if (assignment->ranks == job.ranks()) return assignment;
  return base::fail(
      base::usage_error(job.name,
                        fmt::format("has a layout of {} rank{}, but {} started {}", job.ranks(),
                                    job.ranks() == 1 ? "" : "s",
                                    control::to_text(assignment->source), assignment->ranks),
                        "start as many as the layout has, or change the layout"));
}

}  // namespace assay::cli
