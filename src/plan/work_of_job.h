// From a job to the work that the model of a step predicts.
#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "plan/model/work.h"
#include "spec/job.h"

namespace assay::plan {

struct Assumed {
  // Default: nanochat for models with its value embeddings or residual scales, else our trainer.
  std::optional<Framework> framework;
  // Of a mixture: rows of the most loaded expert, as a multiple of an even share. Default:
  // usual_imbalance().
  std::optional<double> imbalance;
};

// Of our trainer 1.2: eight experts, trained for 38,000 steps with a loss that balances them, were
// published with 1.04 to 1.22 in most layers (github.com/shawntan/scattermoe, issue 10). Of others
// 1: the rows that the model was fitted to have theirs in them.
double usual_imbalance(Framework framework);

// Rows of the rank that has the most loaded expert, as a multiple of an even share: of so many
// experts over so many ranks, where the other experts share the rest evenly. A capacity bounds the
// fullest one.
double load_of_fullest_rank(double imbalance, double experts, double ranks, double capacity);

Framework framework_of(const spec::JobSpec& job, const Assumed& assumed);

// Whether steps in the job's precision are predicted: formats with a scale per block need cards
// that multiply them, and software that does. Of devices that nothing is predicted for, nothing is
// said.
base::Result<void> check_precision(const spec::JobSpec& job, Framework framework);

// With the job's recomputation, or the nearest that the framework has; without any if it is auto,
// for which prediction.h chooses. Fails
// for CPUs and for devices that lack what a prediction needs, naming the key to set.
base::Result<Work> work_of(const spec::JobSpec& job, const Assumed& assumed = {});

// The layout as the framework runs it: a pipeline of 1F1B where it does not have the schedule.
spec::LayoutSpec layout_run_by(Framework framework, const spec::LayoutSpec& layout);

// The same work in another layout and with another batch, for searches that try many: `work` is
// the job's, whatever its layout was.
void spread(Work& work, const spec::LayoutSpec& layout, const spec::BatchSpec& batch);

// Of the job's own table (communication_of); spread() leaves it as it was.
base::Result<MuonExchange> muon_exchange_of(const spec::JobSpec& job);

}  // namespace assay::plan
