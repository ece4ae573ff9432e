#include "plan/plan.h"

#include <fmt/format.h>

#include <bit>

namespace assay::plan {
namespace {

PlannedStep step_of(const Prediction& made, const PlanInputs& inputs) {
  const SoftwareClass kind = made.work.software.kind(made.work.shape.is_moe());
  return {.time = made.step,
          .interval = inputs.intervals.of(kind),
          .comparable = std::string(to_text(kind)),
          .extrapolations = extrapolations(made.work, inputs.ranges),
          .tokens_per_s = made.tokens_per_second,
          .mfu = made.mfu,
          .mfu_with_embedding = made.mfu_with_embedding};
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

Plan plan_of(const std::string& name, const spec::JobSpec& job, const PlanInputs& inputs) {
  Plan plan = plan_without_step(name, job, job.cluster.device.name, "");
  plan.constants = constants_version(inputs.constants);
  const auto made = predict(job, inputs.assumed, inputs.constants);
  if (!made) {
    plan.unknown.push_back(made.error().line());
    return plan;
  }
  plan.framework = to_text(made->work.software.framework);
  plan.recompute = to_text(made->work.recompute);
  plan.step = step_of(*made, inputs);
  plan.memory = PlannedMemory{.need = made->memory, .device = made->work.card.memory};
  return plan;
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

std::string constants_version(const ModelConstants& constants) {
  Fingerprint fingerprint;
  for (const ConstantInfo& info : constant_table()) fingerprint.add(constants.time.*info.value);
  for (const MemoryConstantInfo& info : memory_constant_table()) {
    fingerprint.add(constants.memory.*info.value);
  }
  return fingerprint.text();
}

}  // namespace assay::plan
