// A few steps of one rank of a layout on a GPU, for tests that compare layouts with one rank.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/cuda/cuda_backend.h"
#include "train/resume.h"
#include "train/state.h"
#include "train/testing/executed_as_listed.h"

namespace assay::train::cuda::testing {

struct RankRun {
  static constexpr std::int64_t kMicros = 12;  // of a step, over all ranks
  static constexpr std::int64_t kSteps = 5;

  spec::ModelSpec model;
  step::Choices choices;  // with the rank's layout
  RankGroups* groups = nullptr;
  int device = 0;
  // The same algorithms everywhere: what one rank has timed first.
  std::string tuning_file;

  // The part of a tensor of the state that this rank has at the end.
  std::function<void(const StateTensor&, const std::vector<std::byte>&)> on_state;
  std::function<void(const Scalars&)> on_step;
  // With what is about to be executed, and what has been.
  std::function<base::Result<void>(const step::Program&)> before_steps;
  std::function<base::Result<void>(const step::Program&)> after_steps;
};

// Tokens depend on the micro-batch's place in the step alone.
inline base::Result<void> run_rank(RankRun run) {
  const step::Place data = run.choices.layout.data();
  run.choices.accumulate = RankRun::kMicros / data.ranks;
  ASSAY_TRY(const step::Program program, step::build(run.model, run.choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY(const auto backend, make_cuda_backend({.device = run.device,
                                                   .tuning_file = run.tuning_file,
                                                   .copies_state = false,
                                                   .groups = run.groups}));
  ASSAY_TRY_VOID(backend->prepare(program, plan));
  ASSAY_TRY_VOID(initialise(*backend, program, 5));
  ExecutedLog log;
  backend->log_to(&log);
  if (run.before_steps) ASSAY_TRY_VOID(run.before_steps(program));
  for (std::int64_t step = 1; step <= RankRun::kSteps; ++step) {
    const StepSettings settings{
        .step = step,
        .learning_rate = 1e-2,
        .muon_learning_rate = 1e-2,
        .muon_momentum = 0.9,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .weight_decay = 0.1,
        .clip = 0.5,
        .z_loss = 1e-3,
        .counted_targets = static_cast<double>(program.global_step_tokens())};
    const auto batch = [&](std::int32_t micro, std::span<std::int32_t> tokens,
                           std::span<std::int32_t> targets) -> base::Result<void> {
      const std::int64_t place = step * RankRun::kMicros + micro * data.ranks + data.rank;
      const auto token = [&](std::size_t i) {
        const auto n = static_cast<std::uint64_t>(place) * 7919U + i * i * 31U + i * 17U;
        return static_cast<std::int32_t>(n % static_cast<std::uint64_t>(run.model.vocab));
      };
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(i);
      for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = token(i + 1);
      return {};
    };
    ASSAY_TRY(const Scalars scalars, run_step(*backend, program, settings, batch));
    if (run.on_step) run.on_step(scalars);
  }
  if (run.after_steps) ASSAY_TRY_VOID(run.after_steps(program));
  train::testing::expect_executed_as_listed(log, program, RankRun::kSteps);
  for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
    for (const StateTensor& tensor : state_tensors(program, kind)) {
      if (tensor.own.count == 0) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(tensor, tensor.own).count));
      ASSAY_TRY_VOID(backend->read(tensor.view, bytes));
      if (run.on_state) run.on_state(tensor, bytes);
    }
  }
  return {};
}

}  // namespace assay::train::cuda::testing
