#include "plan/trainer_rules.h"

#include <fmt/format.h>

#include "plan/model/cards.h"

namespace assay::plan {
namespace {

bool has_gpus(const spec::JobSpec& job) {
  return job.cluster.device.kind == spec::DeviceKind::kGpu;
}

}  // namespace

TrainerRules::TrainerRules(const spec::JobSpec& job, Framework framework)
    : model_(job.model), choices_(step::choices_of(job)), gpu_(has_gpus(job)) {
  const spec::LayoutSpec one{.dp = 1};
  apply_ = framework == Framework::kAssay && check_device(job.cluster.device) &&
           broken(choices_of(one, easiest_batch(one))) == nullptr;
}

// Every rule about micro-batches asks for a multiple of something.
spec::BatchSpec TrainerRules::easiest_batch(const spec::LayoutSpec& layout) const {
  return {.sequence = choices_.sequence,
          .micro_batch = step::kFp8Alignment * layout.tp,
          .accumulate = layout.pp};
}

step::Choices TrainerRules::choices_of(const spec::LayoutSpec& layout,
                                       const spec::BatchSpec& batch) const {
  step::Choices choices = choices_;
  choices.micro_batch = batch.micro_batch;
  choices.accumulate = batch.accumulate;
  choices.layout = step::layout_of(layout, 0).value();
  return choices;
}

const step::ProgramRule* TrainerRules::broken(const step::Choices& choices) const {
  const step::ProgramRule* rule = step::broken_rule(model_, choices);
  return rule == nullptr && gpu_ ? step::broken_gpu_rule(model_, choices) : rule;
}

bool TrainerRules::accept(const spec::LayoutSpec& layout, const spec::BatchSpec& batch) const {
  return !apply_ || broken(choices_of(layout, batch)) == nullptr;
}

bool TrainerRules::accept(const spec::LayoutSpec& layout) const {
  return accept(layout, easiest_batch(layout));
}

std::string TrainerRules::reason(const spec::LayoutSpec& layout,
                                 const spec::BatchSpec& batch) const {
  const auto text = [](const base::Error& error) { return error.where + ": " + error.what; };
  const step::Choices choices = choices_of(layout, batch);
  const step::ProgramRule* rule = broken(choices);
  return rule == nullptr ? std::string() : text(rule->error(model_, choices));
}

std::string TrainerRules::reason(const spec::LayoutSpec& layout) const {
  return reason(layout, easiest_batch(layout));
}

base::Result<void> check_device(const spec::DeviceSpec& device) {
  const auto card = card_of(device.name);
  if (!card || card->generation != Generation::kAmd) return {};
  return base::fail(
      base::usage_error("cluster.device.name",
                        fmt::format("the trainer runs on NVIDIA's GPUs, not '{}'", device.name),
                        "name a cluster of those, or other software: --framework"));
}

base::Result<void> check_trained(const spec::JobSpec& job) {
  ASSAY_TRY_VOID(check_device(job.cluster.device));
  step::Choices choices = step::choices_of(job);
  ASSAY_TRY(choices.layout, step::layout_of(job.layout, 0));
  ASSAY_TRY_VOID(step::check(job.model, choices));
  if (!has_gpus(job)) return {};
  return step::check_for_gpus(job.model, choices);
}

}  // namespace assay::plan
