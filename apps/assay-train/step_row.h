// A step as numbers with names: metrics.jsonl, --json and the store are all told from here.
#pragma once

#include <optional>

#include "assay-train/telemetry.h"
#include "spec/job.h"
#include "store/metrics.h"
#include "train/trainer.h"

namespace assay::cli {

// Under both definitions in use (spec/parameters.h); nothing where the device's peak is not known.
struct Utilisation {
  double mfu = 0;     // parameters that multiply activations
  double mfu_6n = 0;  // all parameters
};
class UtilisationOf {
 public:
  explicit UtilisationOf(const spec::JobSpec& job);
  [[nodiscard]] std::optional<Utilisation> at(double tokens_per_s) const;

 private:
  double flops_ = 0;  // per token
  double flops_6n_ = 0;
  double peak_ = 0;
};

struct MeasuredStep {
  train::StepReport report;
  StepUse use;
  std::optional<Utilisation> utilisation;
  std::int64_t unix_ns = 0;  // when it was done
  std::int64_t tokens = 0;   // of the step

  [[nodiscard]] std::optional<double> watts() const;
};

store::MetricRow row_of(const MeasuredStep& step);
store::MetricRow row_of(const train::ValidationReport& report);

}  // namespace assay::cli
