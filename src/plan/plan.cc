#include "plan/plan.h"

#include <fmt/format.h>

#include <bit>

#include "plan/software_layouts.h"
#include "plan/trainer_rules.h"
#include "spec/enum_names.h"

namespace assay::plan {
namespace {

PlannedStep step_of(const Prediction& made, const PlanInputs& inputs) {
  const SoftwareClass kind = made.work.software.kind(made.work.shape.is_moe());
  const double mfu = mfu_of(made.work, made.step.total.count());
  return {.time = made.step,
          .interval = interval_of(made.work, inputs.intervals, inputs.seen, false, mfu),
          .comparable = std::string(to_text(kind)),
          .extrapolations = extrapolations(made.work, inputs.seen, mfu),
          .tokens_per_s = made.tokens_per_second,
          .mfu = made.mfu,
          .mfu_with_embedding = made.mfu_with_embedding};
}

// What most people would run a job with that our trainer refuses.
Framework able_framework(const spec::JobSpec& job) {
  const spec::LayoutSpec& l = job.layout;
  const bool cut = l.tp > 1 || l.pp > 1 || l.cp > 1 || l.ep > 1;
  const bool nvfp4 = job.train.precision == spec::Precision::kNvfp4;
  return job.model.is_moe() || cut || nvfp4 ? Framework::kMegatronCore : Framework::kTorchCompiled;
}

// What the trainer has no program for, and what others' software exchanges.
void add_exchange_of_others(Plan& plan, const spec::JobSpec& job, const ExchangeHabits& habits,
                            const base::Result<void>& programs) {
  spec::Recompute recompute = job.train.recompute;
  if (plan.recompute == "full") recompute = spec::Recompute::kFull;
  if (plan.recompute == "none") recompute = spec::Recompute::kNone;
  auto exchange = exchange_in_closed_form(job, recompute, habits);
  if (!exchange) return plan.unknown.push_back(exchange.error().line());
  if (!programs) exchange->not_counted = programs.error().line();
  plan.exchange = *std::move(exchange);
}

// FNV-1a over the bits of each value.
class Fingerprint {
 public:
  void add(double value) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8U) hash_ = (hash_ ^ (bits & 0xffU)) * 0x100000001b3U;
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace

RecomputeKind recompute_of(const Plan& plan) {
  return parse_recompute(plan.recompute).value_or(RecomputeKind::kNone);
}

Plan plan_of(const std::string& name, const spec::JobSpec& job, const PlanInputs& inputs) {
  Plan plan = plan_without_step(name, job, job.cluster.device.name, "");
  plan.constants = constants_version(inputs.constants);
  Assumed assumed = inputs.assumed;
  Framework framework = framework_of(job, assumed);
  spec::JobSpec chosen = job;
  base::Result<void> programs;
  if (framework == Framework::kAssay) {
    programs = check_trained(job);
    if (!programs) plan.refused = programs.error().line();
    if (programs) programs = add_programs(plan, job, device_of(job));
    if (programs) chosen.train.recompute = recompute_key(recompute_of(plan));
    // Ours only for what ours can do, unless it was asked for by name.
    if (!plan.refused.empty() && !assumed.framework) {
      framework = able_framework(job);
      assumed.framework = framework;
    }
  }
  if (!assumed.framework) {
    assumed.framework = framework_for_layout(job);
    framework = assumed.framework.value_or(framework);
  }
  plan.framework = to_text(framework);
  chosen.layout = layout_run_by(framework, job.layout);
  ExchangeHabits habits{.gradients = {}, .always_shards = always_shards(framework)};
  if (const auto made = predict(chosen, assumed, inputs.constants)) {
    plan.recompute = to_text(made->work.recompute);
    if (made->work.software.gradient_bytes == step::bytes_of(step::Dtype::kF32)) {
      habits.gradients = step::Dtype::kF32;
    }
    plan.step = step_of(*made, inputs);
    if (made->work.shape.is_moe() && made->work.degrees.ep > 1) {
      plan.experts = PlannedExperts{.ranks = job.layout.ep,
                                    .imbalance = made->work.imbalance,
                                    .is_assumed = !assumed.imbalance,
                                    .fullest_rank = made->work.degrees.expert_load};
    }
    if (!plan.memory) {
      plan.memory = PlannedMemory{.need = made->memory, .device = made->work.card.memory};
    }
  } else {
    plan.unknown.push_back(made.error().line());
  }
  if (!plan.exchange) add_exchange_of_others(plan, chosen, habits, programs);
  return plan;
}

std::optional<Framework> framework_instead(const spec::JobSpec& job) {
  const Framework framework = framework_of(job, {});
  if (framework != Framework::kAssay || TrainerRules(job, framework).apply()) return std::nullopt;
  return able_framework(job);
}

std::optional<Framework> framework_for_layout(const spec::JobSpec& job) {
  const Framework framework = framework_of(job, {});
  if (missing_in(framework, job.layout).empty()) return std::nullopt;
  return able_framework(job);
}

Plan plan_without_step(const std::string& name, const spec::JobSpec& job, const std::string& device,
                       const std::string& reason) {
  Plan plan{.job = name,
            .device = device,
            .constants = constants_version({}),
            .ranks = job.layout.dp * job.layout.inner_ranks(),
            .tokens_per_step = job.tokens_per_step()};
  if (!reason.empty()) plan.unknown.push_back(reason);
  return plan;
}

base::Result<void> add_programs(Plan& plan, const spec::JobSpec& job, const RankDevice& device) {
  ASSAY_TRY(const RankFootprints found, rank_footprints(job, device));
  const step::Footprint& largest = found.largest();
  plan.recompute = spec::to_text(found.recompute);
  plan.memory = PlannedMemory{.need = memory_of(largest, device.extra),
                              .device = device.memory,
                              .counted = true,
                              .rank = largest.choices.layout.rank()};
  plan.exchange = exchange_of(found.busiest());
  return {};
}

std::string constants_version(const ModelConstants& constants) {
  Fingerprint fingerprint;
  for (const ConstantInfo& info : constant_table()) fingerprint.add(constants.time.*info.value);
  for (const MemoryConstantInfo& info : memory_constant_table()) {
    fingerprint.add(constants.memory.*info.value);
  }
  return fingerprint.text();
}

}  // namespace assay::plan
