// Some steps of one rank of a layout, for tests that compare layouts with one rank: the same tokens
// for every layout, and the state that the ranks have together.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "step/memory_plan.h"
#include "train/backend.h"
#include "train/resume.h"
#include "train/state.h"
#include "train/testing/executed_as_listed.h"
#include "train/testing/state_pieces.h"

namespace assay::train::testing {

// What the ranks of a layout have at the end.
struct Trained {
  std::map<std::string, std::vector<std::byte>> state;
  std::vector<Scalars> scalars;  // of each step, on rank 0
  std::vector<float> loads;      // of experts in the last step, on rank 0; empty: no mixture
};

struct RankRun {
  spec::ModelSpec model;
  step::Choices choices;     // with the rank's layout
  std::int64_t micros = 12;  // of a step, over all ranks
  std::int64_t steps = 5;
  double learning_rate = 1e-2;
  double epsilon = 1e-8;
  double clip = 0.5;
  std::function<base::Result<std::unique_ptr<Backend>>()> make_backend;
  // Changes initial weights.
  std::function<base::Result<void>(Backend&, const step::Program&)> begin = {};
  // With what is about to be executed, and what has been.
  std::function<base::Result<void>(const step::Program&)> before_steps = {};
  std::function<base::Result<void>(const step::Program&)> after_steps = {};
};

// The tokens of a rank's micro-batch depend on its place in the step alone.
inline void fill_batch(const step::Program& program, std::int64_t place,
                       std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
  const step::SequencePart part = program.sequence_part();
  const auto token = [&](std::int64_t i) {
    const auto n = static_cast<std::uint64_t>(place * 7919 + i * i * 31 + i * 17);
    return static_cast<std::int32_t>(n % static_cast<std::uint64_t>(program.model.vocab));
  };
  // Where a rank that has whole sequences would have the token of this row.
  const auto whole = [&](std::size_t i) {
    const auto row = static_cast<std::int64_t>(i);
    return row / part.tokens * program.choices.sequence + part.position(row);
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(whole(i));
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = token(whole(i) + 1);
}

// Whether a document begins with the i-th token of a micro-batch's rows, at this place.
inline bool begins_document(std::int64_t place, std::int64_t i) {
  return (place * 5 + i * i) % 7 < 2;
}

// Where the documents of a micro-batch's tokens begin, and its targets without what begins one.
inline void fill_documents(const step::Program& program, std::int64_t place,
                           std::span<std::int32_t> documents) {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i);
    const std::int64_t at = token % program.choices.sequence;
    if (at == 0 || begins_document(place, token)) begin = at;
    documents[i] = static_cast<std::int32_t>(begin);
  }
}

inline std::int64_t mask_targets(std::int64_t place, std::span<std::int32_t> targets) {
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (begins_document(place, static_cast<std::int64_t>(i) + 1)) targets[i] = -1;
    counted += targets[i] < 0 ? 0 : 1;
  }
  return counted;
}

// Targets of a step that count, of all ranks.
inline double counted_targets(const step::Program& program, std::int64_t micros,
                              std::int64_t step) {
  if (!program.choices.document_mask) return static_cast<double>(program.global_step_tokens());
  std::vector<std::int32_t> targets(static_cast<std::size_t>(program.micro_tokens()));
  std::int64_t counted = 0;
  for (std::int64_t micro = 0; micro < micros; ++micro) {
    std::fill(targets.begin(), targets.end(), 0);
    counted += mask_targets(step * micros + micro, targets);
  }
  return static_cast<double>(counted);
}

// `trained` is shared by the ranks, and guarded by the mutex.
inline base::Result<void> run_rank(RankRun run, Trained& trained, std::mutex& mutex) {
  const step::AxisPosition reads = run.choices.layout.sequences();
  run.choices.accumulate = run.micros / reads.ranks;
  ASSAY_TRY(const step::Program program, step::build(run.model, run.choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY(const auto backend, run.make_backend());
  ASSAY_TRY_VOID(backend->prepare(program, plan));
  ASSAY_TRY_VOID(initialise(*backend, program, 5));
  if (run.begin) ASSAY_TRY_VOID(run.begin(*backend, program));
  ExecutedLog log;
  backend->log_to(&log);
  if (run.before_steps) ASSAY_TRY_VOID(run.before_steps(program));
  for (std::int64_t step = 1; step <= run.steps; ++step) {
    const StepSettings settings{.step = step,
                                .learning_rate = run.learning_rate,
                                .muon_learning_rate = 1e-2,
                                .muon_momentum = 0.9,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .epsilon = run.epsilon,
                                .weight_decay = 0.1,
                                .clip = run.clip,
                                .z_loss = 1e-3,
                                .counted_targets = counted_targets(program, run.micros, step),
                                .balance_loss = 0.01,
                                .router_z_loss = 0.001,
                                .balance_rate = 0.001};
    const auto place_of = [&](std::int32_t micro) {
      return step * run.micros + micro * reads.ranks + reads.rank;
    };
    const auto batch = [&](std::int32_t micro, std::span<std::int32_t> tokens,
                           std::span<std::int32_t> targets) -> base::Result<void> {
      fill_batch(program, place_of(micro), tokens, targets);
      if (program.choices.document_mask) mask_targets(place_of(micro), targets);
      return {};
    };
    const auto documents = [&](std::int32_t micro,
                               std::span<std::int32_t> to) -> base::Result<void> {
      fill_documents(program, place_of(micro), to);
      return {};
    };
    ASSAY_TRY(const Scalars scalars, run_step(*backend, program, settings, batch, documents));
    const std::lock_guard lock(mutex);
    if (program.choices.layout.rank() == 0) trained.scalars.push_back(scalars);
  }
  if (run.after_steps) ASSAY_TRY_VOID(run.after_steps(program));
  expect_executed_as_listed(log, program, run.steps);
  if (program.choices.layout.rank() == 0 && program.loads.buffer >= 0) {
    std::vector<float> loads(static_cast<std::size_t>(program.loads.elements()));
    ASSAY_TRY_VOID(backend->read(program.loads, std::as_writable_bytes(std::span(loads))));
    const std::lock_guard lock(mutex);
    trained.loads = std::move(loads);
  }
  for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
    for (const StateTensor& tensor : state_tensors(program, kind)) {
      if (tensor.own.count == 0) continue;
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(tensor.own.count * step::bytes_of(tensor.type)));
      ASSAY_TRY_VOID(backend->read(tensor.view, bytes));
      const std::lock_guard lock(mutex);
      std::vector<std::byte>& whole = trained.state[tensor.name];
      whole.resize(static_cast<std::size_t>(tensor.bytes()));
      put_own(tensor, bytes, whole);
    }
  }
  return {};
}

inline double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// How far first moments, which after one step are gradients, are from one rank's: the most that one
// tensor differs by, as a share of its size; tensors that are nearly nothing beside the others are
// rounding errors themselves (the bias of keys) and count as a part of the largest.
template <class Floats>
double gradients_apart(const Trained& one, const Trained& many, Floats floats_of) {
  std::map<std::string, std::pair<double, double>> tensors;  // difference and size
  double largest = 0;
  for (const auto& [name, bytes] : one.state) {
    if (!name.starts_with("first_moment/")) continue;
    std::vector<float> expected = floats_of(bytes);
    const double size = norm_of(expected);
    const std::vector<float> found = floats_of(many.state.at(name));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= found[i];
    tensors[name] = {norm_of(expected), size};
    largest = std::max(largest, size);
  }
  double worst = 0;
  for (const auto& [name, tensor] : tensors) {
    worst = std::max(worst, tensor.first / (tensor.second + 0.01 * largest));
  }
  return worst;
}

}  // namespace assay::train::testing
