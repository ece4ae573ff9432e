#include "train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "spec/load.h"
#include "train/float_bits.h"
#include "train/init.h"
#include "train/state.h"
#include "train/threads.h"

namespace assay::train {
namespace {

base::Error differs(const checkpoint::Checkpoint& from, const std::string& what,
                    const std::string& hint) {
  return base::usage_error(from.folder().string(), what, hint);
}

// Writes fp32 values to a program that keeps weights as two halves; of the low halves, this rank's.
base::Result<void> write_split(Backend& backend, const step::Program& program,
                               const step::View& view, std::span<const float> values) {
  const SplitFloats split = split_floats(values);
  ASSAY_TRY_VOID(backend.write(view, std::as_bytes(std::span(split.high))));
  for (const step::GroupBuffers& group : program.groups) {
    if (group.weights != view.buffer || group.remainders < 0) continue;
    const step::Range own = group.own.common({view.offset, view.elements()});
    if (own.count == 0) return {};
    step::View low = view;
    if (own.count < view.elements()) low = {view.buffer, 0, 1, own.count, own.count};
    low.buffer = group.remainders;
    low.offset = own.first - group.own.first;
    const auto halves = std::span(split.low).subspan(
        static_cast<std::size_t>(own.first - view.offset), static_cast<std::size_t>(own.count));
    return backend.write(low, std::as_bytes(halves));
  }
  return {};
}

base::Result<void> write_weights(Backend& backend, const step::Program& program,
                                 const StateTensor& tensor, checkpoint::Dtype stored,
                                 const std::vector<std::byte>& bytes) {
  if (stored == file_info(tensor).dtype) return backend.write(tensor.view, bytes);
  if (stored == checkpoint::Dtype::kF32) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return write_split(backend, program, tensor.view, values);
  }
  ASSAY_TRY(const std::vector<std::byte> wide, converted(bytes, stored, tensor.type));
  return backend.write(tensor.view, wide);
}

base::Result<void> read_part(Backend& backend, const step::Program& program, StateKind kind,
                             const char* name, const checkpoint::Checkpoint& from) {
  ASSAY_TRY(const checkpoint::TensorSet set, from.part(name));
  for (const StateTensor& tensor : state_tensors(program, kind)) {
    const auto found = set.find(tensor.name);
    if (!found || found->place->info.dtype != file_info(tensor).dtype ||
        found->place->info.shape != file_info(tensor).shape) {
      return base::fail(differs(from,
                                fmt::format("has no tensor {} of this type and shape", tensor.name),
                                "resume with the precision it was trained in"));
    }
    if (tensor.own.count == 0) continue;
    const step::Range own = bytes_of(tensor, tensor.own);
    std::vector<std::byte> bytes(static_cast<std::size_t>(own.count));
    ASSAY_TRY_VOID(found->file->read(*found->place, own.first, bytes));
    ASSAY_TRY_VOID(backend.write(tensor.view, bytes));
  }
  return {};
}

}  // namespace

base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from) {
  const checkpoint::TrainingState& state = from.manifest().state;
  if (state.step == 0) {  // imported weights
    ASSAY_TRY_VOID(restore_weights(backend, program, from));
    return Position{};
  }
  if (state.layout != layout_text(program)) {
    return base::fail(
        differs(from, "is a checkpoint of another model", "use the model it was trained with"));
  }
  if (state.seed != static_cast<std::uint64_t>(job.train.seed)) {
    return base::fail(differs(from, fmt::format("was trained with train.seed={}", state.seed),
                              "use the same seed"));
  }
  const auto batch = state.extra.find("batch");
  if (batch == state.extra.end() || *batch != batch_facts(job)) {
    return base::fail(differs(from, "was trained with another batch or optimizer",
                              "keep batch.sequence, the sequences of a step and train.optimizer"));
  }
  const auto windows = state.data_cursor.find("windows");
  if (windows == state.data_cursor.end() || !windows->is_number_unsigned()) {
    return base::fail(differs(from, "has no position in the data", ""));
  }
  ASSAY_TRY_VOID(read_part(backend, program, StateKind::kWeights, "weights", from));
  ASSAY_TRY_VOID(read_part(backend, program, StateKind::kOptimizer, "optimizer", from));
  return Position{state.step, state.tokens, windows->get<std::uint64_t>()};
}

base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from) {
  ASSAY_TRY(const checkpoint::TensorSet set, from.part("weights"));
  for (const StateTensor& tensor : state_tensors(program, StateKind::kWeights)) {
    const auto found = set.find(tensor.name);
    if (!found || found->place->info.shape != file_info(tensor).shape) {
      return base::fail(differs(from, fmt::format("has no tensor {}", tensor.name), ""));
    }
    const auto stored = found->place->info.bytes();
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.value_or(0)));
    ASSAY_TRY_VOID(found->file->read(*found->place, 0, bytes));
    ASSAY_TRY_VOID(write_weights(backend, program, tensor, found->place->info.dtype, bytes));
  }
  return {};
}

base::Result<spec::ModelSpec> model_of(const checkpoint::Checkpoint& from) {
  const base::Json& extra = from.manifest().state.extra;
  const auto model = extra.find("model");
  if (model == extra.end() || !model->is_string()) {
    return base::fail(differs(from, "does not name its model", ""));
  }
  return spec::model_from_toml(model->get<std::string>(), from.folder().string());
}

base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed) {
  constexpr std::int64_t kChunk = 1 << 16;
  Threads threads(usable_processors());
  std::int64_t largest = 0;
  for (const step::Parameter& p : program.parameters) largest = std::max(largest, p.elements());
  std::vector<float> all(static_cast<std::size_t>(largest));
  for (const step::Parameter& p : program.parameters) {
    const std::span<float> values = std::span(all).first(static_cast<std::size_t>(p.elements()));
    threads.ranges(p.elements(), kChunk, [&](std::int64_t first, std::int64_t last) {
      initial_values(
          p, seed, first,
          values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    });
    const step::View view = program.weight(p);
    if (program.choices.numerics.weights == step::Dtype::kF32) {
      ASSAY_TRY_VOID(backend.write(view, std::as_bytes(std::span(values))));
    } else {
      ASSAY_TRY_VOID(write_split(backend, program, view, values));
    }
  }
  return {};
}

}  // namespace assay::train
