#include "train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "spec/load.h"
#include "spec/schema.h"
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

// The first key of the model that is not as in the checkpoint, if that says which model it has. The
// longest sequence is none of the weights' business: it may be raised.
std::string other_key(const checkpoint::Checkpoint& from, const spec::ModelSpec& model) {
  const auto saved = model_of(from);
  if (!saved) return "";
  const base::Json there = spec::section_json(*saved);
  const base::Json here = spec::section_json(model);
  for (const auto& [key, value] : here.items()) {
    const auto found = there.find(key);
    if (key == "context" || found == there.end() || *found == value) continue;
    return fmt::format("model.{} is {} there and {} in this job", key, found->dump(), value.dump());
  }
  return "";
}

base::Error of_another_model(const checkpoint::Checkpoint& from, const std::string& how) {
  const char* const what = "is a checkpoint of another model";
  return differs(from, how.empty() ? what : fmt::format("{}: {}", what, how),
                 "use the model it was trained with");
}

// Writes fp32 weights, from element `first` of what this tensor-parallel rank has of the parameter:
// `values` have what this rank keeps of it. Where weights are in two halves, all of the high ones
// are written, and of the low ones what the rank keeps.
base::Result<void> write_floats(Backend& backend, const step::Program& program,
                                const step::Parameter& parameter, std::int64_t first,
                                std::span<const float> values) {
  const StateTensor weight = weight_tensor(program, parameter);
  const auto own = [&](auto list, const step::Range& range) {
    return list.subspan(static_cast<std::size_t>(range.first - first),
                        static_cast<std::size_t>(range.count));
  };
  if (weight.type == step::Dtype::kF32) {
    return backend.write(weight.view, std::as_bytes(own(values, weight.own)));
  }
  const SplitFloats split = split_floats(values);
  ASSAY_TRY_VOID(backend.write(weight.view, std::as_bytes(own(std::span(split.high), weight.own))));
  const std::optional<StateTensor> low = remainder_tensor(program, parameter);
  if (!low || low->own.count == 0) return {};
  return backend.write(low->view, std::as_bytes(own(std::span(split.low), low->own)));
}

// A stored tensor's elements that this rank has, in the type they are stored in.
base::Result<std::vector<std::byte>> read_own(const checkpoint::TensorSet& set,
                                              const checkpoint::StoredTensor& stored,
                                              const StateTensor& tensor) {
  constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 20U;  // elements
  const std::int64_t size = checkpoint::dtype_bytes(stored.info.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.own.count * size));
  std::span<std::byte> rest(bytes);
  const auto next = [&](std::int64_t elements) {
    const std::span<std::byte> some = rest.first(static_cast<std::size_t>(elements * size));
    rest = rest.subspan(some.size());
    return some;
  };
  std::vector<std::byte> rows;
  for (const checkpoint::ElementRange& piece : tensor.pieces(tensor.own)) {
    if (!piece.in_runs()) {
      ASSAY_TRY_VOID(set.read(stored, piece.first * size, next(piece.count)));
      continue;
    }
    // Some whole rows at a time, and of each what is wanted: reading run by run would ask the file
    // system for every row.
    const std::int64_t step = std::max<std::int64_t>(1, kMostAtOnce / piece.apart);
    const std::int64_t runs = piece.count / piece.run;
    for (std::int64_t from = 0; from < runs; from += step) {
      const std::int64_t count = std::min(step, runs - from);
      const std::int64_t elements = (count - 1) * piece.apart + piece.run;
      rows.resize(static_cast<std::size_t>(elements * size));
      ASSAY_TRY_VOID(set.read(stored, (piece.first + from * piece.apart) * size, rows));
      for (std::int64_t i = 0; i < count; ++i) {
        const std::span<std::byte> run = next(piece.run);
        std::memcpy(run.data(), rows.data() + i * piece.apart * size, run.size());
      }
    }
  }
  return bytes;
}

base::Result<void> write_weights(Backend& backend, const step::Program& program,
                                 const step::Parameter& parameter, checkpoint::Dtype stored,
                                 const std::vector<std::byte>& own) {
  const StateTensor tensor = weight_tensor(program, parameter);
  if (stored == file_info(tensor).dtype) return backend.write(tensor.view, own);
  if (stored == checkpoint::Dtype::kF32) {
    std::vector<float> values(own.size() / sizeof(float));
    std::memcpy(values.data(), own.data(), own.size());
    return write_floats(backend, program, parameter, tensor.own.first, values);
  }
  ASSAY_TRY(const std::vector<std::byte> wide, converted(own, stored, tensor.type));
  return backend.write(tensor.view, wide);
}

base::Result<void> read_part(Backend& backend, const step::Program& program, StateKind kind,
                             const char* name, const checkpoint::Checkpoint& from) {
  ASSAY_TRY(const checkpoint::TensorSet set, from.part(name));
  for (const StateTensor& tensor : state_tensors(program, kind)) {
    const checkpoint::StoredTensor* found = set.find(tensor.name);
    if (found == nullptr || found->info != file_info(tensor)) {
      return base::fail(differs(from,
                                fmt::format("has no tensor {} of this type and shape", tensor.name),
                                "resume with the precision it was trained in"));
    }
    if (tensor.own.count == 0) continue;
    ASSAY_TRY(const std::vector<std::byte> bytes, read_own(set, *found, tensor));
    ASSAY_TRY_VOID(backend.write(tensor.view, bytes));
  }
  return {};
}

// Initial values of some elements: each is a function of its place in the model's parameter.
void draw(const step::Parameter& parameter, std::uint64_t seed,
          const std::vector<checkpoint::ElementRange>& pieces, std::span<float> values) {
  for (const checkpoint::ElementRange& piece : pieces) {
    const std::int64_t run = piece.in_runs() ? piece.run : piece.count;
    for (std::int64_t done = 0; done < piece.count; done += run) {
      initial_values(parameter, seed, piece.first + done / run * piece.apart,
                     values.first(static_cast<std::size_t>(run)));
      values = values.subspan(static_cast<std::size_t>(run));
    }
  }
}

}  // namespace

base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from) {
  const checkpoint::TrainingState& state = from.manifest().state;
  if (state.step == 0) {  // imported weights
    ASSAY_TRY_VOID(restore_weights(backend, program, from));
    return Position{};
  }
  const std::string other = other_key(from, program.model);
  if (state.layout != layout_text(program) || !other.empty()) {
    return base::fail(of_another_model(from, other));
  }
  if (state.seed != static_cast<std::uint64_t>(job.train.seed)) {
    return base::fail(differs(from, fmt::format("was trained with train.seed={}", state.seed),
                              "use the same seed"));
  }
  const auto batch = state.extra.find("batch");
  if (batch == state.extra.end() || *batch != batch_facts(job)) {
    return base::fail(differs(from, "was trained with another batch, optimizer or data.mix or pack",
                              "keep batch.sequence, the sequences of a step, train.optimizer, "
                              "data.mix and data.pack"));
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
  for (const step::Parameter& parameter : program.model_parameters) {
    const StateTensor tensor = weight_tensor(program, parameter);
    const checkpoint::StoredTensor* found = set.find(tensor.name);
    if (found == nullptr || found->info.shape != file_info(tensor).shape) {
      if (const std::string other = other_key(from, program.model); !other.empty()) {
        return base::fail(of_another_model(from, other));
      }
      return base::fail(
          differs(from, fmt::format("has no tensor {} of this shape", tensor.name), ""));
    }
    if (tensor.own.count == 0) continue;
    ASSAY_TRY(const std::vector<std::byte> bytes, read_own(set, *found, tensor));
    ASSAY_TRY_VOID(write_weights(backend, program, parameter, found->info.dtype, bytes));
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

base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed,
                              int thread_count) {
  constexpr std::int64_t kChunk = 1 << 16;
  Threads threads(thread_count > 0 ? thread_count : usable_processors());
  const std::vector<StateTensor> weights = state_tensors(program, StateKind::kWeights);
  std::int64_t largest = 0;
  for (const StateTensor& weight : weights) largest = std::max(largest, weight.own.count);
  std::vector<float> all(static_cast<std::size_t>(largest));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const step::Range own = weights[i].own;
    if (own.count == 0) continue;
    const std::span<float> values = std::span(all).first(static_cast<std::size_t>(own.count));
    threads.ranges(own.count, kChunk, [&](std::int64_t first, std::int64_t last) {
      draw(program.model_parameters[i], seed, weights[i].pieces({own.first + first, last - first}),
           values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    });
    ASSAY_TRY_VOID(write_floats(backend, program, program.model_parameters[i], own.first, values));
  }
  return {};
}

}  // namespace assay::train
