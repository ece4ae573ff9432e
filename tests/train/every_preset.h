// Executes one step of every model preset that is small enough for a device.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "spec/load.h"
#include "spec/presets.h"
#include "train/testing/executed_as_listed.h"

namespace assay::train {

// Returns how many were executed. With full recomputation, which gives the longest list.
inline int execute_every_preset(const std::function<std::unique_ptr<Backend>()>& make,
                                spec::Precision precision, std::int64_t most_bytes) {
  int executed = 0;
  for (const std::string& name : spec::preset_names(spec::Kind::kModel)) {
    const auto loaded = spec::load(name);
    EXPECT_TRUE(loaded.has_value()) << name;
    const auto* model = std::get_if<spec::ModelSpec>(&loaded->spec);
    if (model == nullptr) continue;
    const auto program = step::build(*model, {.numerics = step::numerics_of(precision),
                                              .recompute = spec::Recompute::kFull,
                                              .sequence = 32,
                                              .micro_batch = 1,
                                              .accumulate = 2});
    if (!program) continue;  // mixtures of experts and the like are refused
    const step::MemoryPlan plan = step::plan_memory(*program);
    if (plan.bytes > most_bytes) continue;
    SCOPED_TRACE(name);
    const std::unique_ptr<Backend> backend = make();
    const auto prepared = backend->prepare(*program, plan);
    EXPECT_TRUE(prepared.has_value()) << prepared.error().line();
    if (!prepared) continue;
    ExecutedLog log;
    backend->log_to(&log);
    const auto stepped = run_step(*backend, *program, {.counted_targets = 64},
                                  [](std::int32_t, auto tokens, auto targets) {
                                    std::fill(tokens.begin(), tokens.end(), 3);
                                    std::fill(targets.begin(), targets.end(), 5);
                                    return base::Result<void>{};
                                  });
    EXPECT_TRUE(stepped.has_value());
    testing::expect_executed_as_listed(log, *program);
    ++executed;
  }
  return executed;
}

}  // namespace assay::train
