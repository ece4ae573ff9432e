// assay-train tune: times the matrix products of a job long enough to trust the result, and stores
// the fastest algorithms in the cache, or in a file to be compiled into the program
// (src/train/cuda/tuned/).
#include <fmt/format.h>

#include "assay-train/device.h"
#include "assay-train/training_job.h"
#include "assay-train/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "step/program.h"
#include "step/rules.h"
#include "train/cuda/cuda_backend.h"
#include "train/planned_step.h"

namespace assay::cli {

base::Result<base::ExitCode> tune_products(const Session& session, const TuneOptions& options) {
  TrainOptions as_for_train;
  as_for_train.job = options.job;
  as_for_train.sets = options.sets;
  as_for_train.device = "cuda";
  ASSAY_TRY(const TrainingJob loaded, load_training_job(as_for_train));
  spec::JobSpec job = loaded.job;
  if (loaded.ranks() > 1) {
    return base::fail(base::usage_error(loaded.name, "has several ranks",
                                        "tune one of them: --set layout.ranks=1 …"));
  }
  if (job.train.precision == spec::Precision::kFp32) job.train.precision = spec::Precision::kBf16;
  std::string no_cache;
  const std::string file = options.out.empty() ? tuning_file(&no_cache) : options.out;
  if (file.empty()) {
    return base::fail(base::unfit_error("the cache", no_cache, "name a file with --out"));
  }
  const base::Stopwatch watch;
  ASSAY_TRY(const auto backend,
            train::cuda::make_cuda_backend({.deterministic_attention = job.train.deterministic,
                                            .tuning_file = file,
                                            .thorough_tuning = true,
                                            .copies_state = false}));
  ASSAY_TRY(const std::int64_t available, backend->available_bytes());
  step::Choices choices = step::choices_of(job);
  choices.numerics = step::numerics_of(job.train.precision);
  ASSAY_TRY(choices.layout, step::layout_of(job.layout, 0));
  ASSAY_TRY(const train::ExecutableStep planned,
            train::plan_step(job, choices, train::memory_budget(*backend, available)));
  ASSAY_TRY_VOID(backend->prepare(planned.program, planned.plan));
  for (const std::string& note : backend->take_notes()) {
    return base::fail(base::failed_error(file, note));
  }
  const std::string text = backend->algorithms();
  const auto products = std::ranges::count(text, '\n') - 1;
  session.print_json(
      base::Json{{"file", file}, {"products", products}, {"seconds", watch.elapsed().count()}});
  session.print(fmt::format("{} matrix products of {} timed in {:.0f} s: {}\n", products,
                            loaded.name, watch.elapsed().count(), file));
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
