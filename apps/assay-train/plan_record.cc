#include "assay-train/plan_record.h"

#include "base/clock.h"
#include "plan/plan.h"
#include "spec/enum_names.h"

namespace assay::cli {
store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::PlannedStep& planned, const TrainingDevice& device) {
  spec::JobSpec chosen = job;
  chosen.train.recompute = planned.program.choices.recompute;
  const bool gpu = device.gpu_bus_id.has_value();
  plan::Plan plan =
      gpu ? plan::plan_of(name, chosen)
          : plan::plan_without_step(name, chosen, device.backend->description(),
                                    "it runs on CPUs, but step times are predicted only for GPUs");
  plan.framework = plan::to_text(plan::Framework::kAssay);
  // For this device, from the rank that needs most memory and the one that communicates most.
  const auto counted = plan::add_programs(plan, chosen,
                                          {.cpu = !gpu,
                                           .memory = base::Bytes(device.available_bytes),
                                           .extra = base::Bytes(planned.extra_bytes)});
  if (!counted) plan.unknown.push_back(counted.error().line());
  store::PlanRecord record{.planned_unix_ns = base::system_clock().wall_ns(),
                           .job = plan.job,
                           .device = plan.device,
                           .plan = plan::to_json(plan)};
  if (plan.memory) record.memory_bytes = plan.memory->need.total().count();
  if (plan.step) record.step_s = plan.step->time.total.count();
  return record;
}

}  // namespace assay::cli
