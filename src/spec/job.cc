#include "spec/job.h"

#include "spec/parameters.h"

namespace assay::spec {

std::optional<std::int64_t> training_steps(const JobSpec& job) {
  if (job.train.steps) return job.train.steps;
  if (job.train.tokens) return *job.train.tokens / job.tokens_per_step();
  if (!job.train.tokens_per_matmul_parameter) return std::nullopt;
  const auto parameters = count_parameters(job.model);
  if (!parameters) return std::nullopt;  // a completed job has been counted before
  const double tokens =
      *job.train.tokens_per_matmul_parameter * static_cast<double>(parameters->matmul);
  return static_cast<std::int64_t>(tokens / static_cast<double>(job.tokens_per_step()));
}

}  // namespace assay::spec
