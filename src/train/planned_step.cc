#include "train/planned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/units.h"
#include "spec/enum_names.h"
#include "step/recompute.h"

namespace assay::train {
namespace {

using spec::Recompute;

std::string bytes_text(std::int64_t bytes) {
  return base::to_text(base::Bytes(bytes));
}

base::Result<ExecutableStep> planned(const spec::ModelSpec& model, const step::Choices& choices) {
  ExecutableStep result;
  ASSAY_TRY(result.program, step::build(model, choices));
  result.plan = step::plan_memory(result.program);
  return result;
}

// The largest micro-batch of the same step that fits with full recomputation, or nothing. Planned
// memory is about linear in the micro-batch, so two plans suggest it and a third confirms it.
std::optional<std::int64_t> fitting_micro_batch(const spec::ModelSpec& model, step::Choices choices,
                                                std::int64_t limit) {
  const std::int64_t sequences = choices.micro_batch * choices.accumulate;
  choices.recompute = Recompute::kFull;
  choices.micro_batch = 1;
  const auto one = planned(model, choices);
  choices.micro_batch = 2;
  const auto two = planned(model, choices);
  if (!one || !two || one->plan.bytes > limit) return std::nullopt;
  const std::int64_t each = std::max<std::int64_t>(1, two->plan.bytes - one->plan.bytes);
  std::int64_t micro = std::min(sequences, 1 + (limit - one->plan.bytes) / each);
  while (micro > 1 && sequences % micro != 0) --micro;
  choices.micro_batch = micro;
  choices.accumulate = sequences / micro;
  const auto found = planned(model, choices);
  if (!found || found->plan.bytes > limit) return std::nullopt;
  return micro;
}

base::Error does_not_fit(const spec::JobSpec& job, const step::Choices& choices,
                         const ExecutableStep& smallest, std::int64_t available) {
  std::string hint;
  const std::int64_t limit = available - smallest.extra_bytes;
  step::Choices full = choices;
  full.recompute = Recompute::kFull;
  const auto fullest = planned(job.model, full);
  if (choices.recompute != Recompute::kFull && fullest && fullest->plan.bytes <= limit) {
    hint = "set train.recompute to \"full\" or \"auto\"";
  } else if (const auto micro = fitting_micro_batch(job.model, choices, limit)) {
    hint = fmt::format("set batch.micro_batch={} batch.accumulate={} and train.recompute=\"full\"",
                       *micro, choices.micro_batch * choices.accumulate / *micro);
  } else {
    hint = "use a smaller model, a shorter sequence or more devices";
  }
  return base::unfit_error(
      "memory",
      fmt::format("the step needs {}, but {} are available",
                  bytes_text(smallest.plan.bytes + smallest.extra_bytes), bytes_text(available)),
      hint);
}

}  // namespace

MemoryBudget memory_budget(Backend& backend, std::int64_t available) {
  return {available, [&](const step::Program& program) { return backend.extra_bytes(program); }};
}

base::Result<ExecutableStep> plan_step(const spec::JobSpec& job, step::Choices choices,
                                       const MemoryBudget& budget) {
  const Recompute requested = choices.recompute;
  std::span<const Recompute> policies = step::kRecomputePolicies;
  if (requested != Recompute::kAuto) policies = {&requested, 1};
  ExecutableStep tried;
  base::Result<void> built;
  const auto build = [&]() -> base::Result<void> {
    ASSAY_TRY(tried, planned(job.model, choices));
    ASSAY_TRY(tried.extra_bytes, budget.extra_bytes(tried.program));
    return {};
  };
  const bool fits = step::choose_recompute(policies, [&](Recompute policy) {
    choices.recompute = policy;
    built = build();
    return !built || tried.plan.bytes + tried.extra_bytes <= budget.available_bytes;
  });
  if (!built) return base::fail(std::move(built).error());
  if (fits) return tried;
  return base::fail(does_not_fit(job, choices, tried, budget.available_bytes));
}

}  // namespace assay::train
