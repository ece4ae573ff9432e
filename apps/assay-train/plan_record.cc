#include "assay-train/plan_record.h"

#include "base/clock.h"
#include "plan/plan.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

plan::PlannedMemory counted_memory(const train::Planned& planned, const Device& device) {
  using step::Storage;
  const step::MemoryPlan& plan = planned.plan;
  return {
      .need = {.parameters = base::Bytes(plan.of(Storage::kWeights)),
               .gradients = base::Bytes(plan.of(Storage::kGradients)),
               .optimizer = base::Bytes(plan.of(Storage::kMoments) + plan.of(Storage::kRemainders)),
               .activations = base::Bytes(plan.of(Storage::kActivations)),
               .gathered = base::Bytes(plan.of(Storage::kGathered)),
               .workspace = base::Bytes(planned.extra_bytes + plan.of(Storage::kInputs) +
                                        plan.of(Storage::kScalars))},
      .device = base::Bytes(device.available_bytes),
      .counted = true};
}

}  // namespace

store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::Planned& planned, const Device& device) {
  spec::JobSpec chosen = job;
  chosen.train.recompute = planned.program.choices.recompute;
  plan::Plan plan = device.gpu_bus_id
                        ? plan::plan_of(name, chosen)
                        : plan::plan_without_step(name, chosen, device.backend->description(),
                                                  "it runs on CPUs, and steps are predicted for "
                                                  "GPUs");
  if (!plan.step) {
    plan.framework = plan::to_text(plan::Framework::kAssay);
    plan.recompute = spec::to_text(chosen.train.recompute);
    plan.memory = counted_memory(planned, device);
  }
  store::PlanRecord record{.planned_unix_ns = base::system_clock().wall_ns(),
                           .job = plan.job,
                           .device = plan.device,
                           .memory_bytes = plan.memory->need.total().count(),
                           .plan = plan::to_json(plan)};
  if (plan.step) record.step_s = plan.step->time.total.count();
  return record;
}

}  // namespace assay::cli
