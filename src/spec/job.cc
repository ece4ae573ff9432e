#include "spec/job.h"

#include "spec/parameters.h"

namespace assay::spec {

std::optional<std::int64_t> training_steps(const JobSpec& job) {
  if (job.train.steps) return job.train.steps;
  if (job.train.tokens) return *job.train.tokens / job.tokens_per_step();
  if (!job.train.tokens_per_matmul_parameter) return std::nullopt;
  // long double holds every count that rules.cc lets through.
  const long double tokens = static_cast<long double>(*job.train.tokens_per_matmul_parameter) *
                             static_cast<long double>(parameters_of(job.model).matmul);
  return static_cast<std::int64_t>(tokens / static_cast<long double>(job.tokens_per_step()));
}

std::optional<std::int64_t> training_tokens(const JobSpec& job) {
  const auto steps = training_steps(job);
  return steps ? std::optional(*steps * job.tokens_per_step()) : std::nullopt;
}

}  // namespace assay::spec
