#include "train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "spec/load.h"
#include "spec/schema.h"
#include "train/float_bits.h"
#include "train/init.h"
#include "train/run_settings.h"
#include "train/state.h"
#include "train/state_reader.h"
#include "train/threads.h"

namespace assay::train {
namespace {

constexpr const char* kUnknownSettings =
    "its data and other settings are not known: it was imported, or an earlier assay wrote it";

base::Error differs(const checkpoint::Checkpoint& from, const std::string& what,
                    const std::string& hint) {
  return base::usage_error(from.folder().string(), what, hint);
}

// The keys of the model that differ from the checkpoint's, if that stores a model. The context
// length does not affect the weights, so it may be raised.
std::string other_keys(const checkpoint::Checkpoint& from, const spec::ModelSpec& model) {
  const auto saved = model_of(from);
  if (!saved) return "";
  const base::Json there = spec::section_json(*saved);
  const base::Json here = spec::section_json(model);
  std::vector<std::string> other;
  for (const auto& [key, value] : here.items()) {
    const auto found = there.find(key);
    if (key == "context" || found == there.end() || *found == value) continue;
    other.push_back(fmt::format("model.{} is {} in the checkpoint and {} in this job", key,
                                found->dump(), value.dump()));
  }
  return fmt::format("{}", fmt::join(other, ", "));
}

base::Error of_another_model(const checkpoint::Checkpoint& from, const std::string& how) {
  const char* const what = "is a checkpoint of another model";
  return differs(from, how.empty() ? what : fmt::format("{}: {}", what, how),
                 "use the model it was trained with");
}

// Writes fp32 weights: `values` is what this rank keeps, from element `first` of its
// tensor-parallel slice of the parameter. If weights are stored as two halves, all high halves are
// written, and the low halves that the rank keeps.
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

// This rank's elements of a stored tensor, in the stored type.
base::Result<std::vector<std::byte>> read_own(const checkpoint::TensorSet& set,
                                              const checkpoint::StoredTensor& stored,
                                              const StateTensor& tensor) {
  const std::int64_t size = checkpoint::dtype_bytes(stored.info.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.own.count * size));
  ASSAY_TRY_VOID(read_elements(set, stored, tensor, tensor.own, bytes));
  return bytes;
}

base::Result<void> write_weights(Backend& backend, const step::Program& program,
                                 const step::Parameter& parameter, checkpoint::TensorDtype stored,
                                 const std::vector<std::byte>& own) {
  const StateTensor tensor = weight_tensor(program, parameter);
  if (stored == file_info(tensor).dtype) return backend.write(tensor.view, own);
  ASSAY_TRY(const std::vector<float> values, to_floats(own, stored));
  return write_floats(backend, program, parameter, tensor.own.first, values);
}

// Initial values of some elements; each depends on its position in the model's parameter.
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

base::Result<void> clear(Backend& backend, const step::Program& program,
                         const std::vector<StateTensor>& tensors) {
  for (const StateTensor& tensor : tensors) {
    if (tensor.own.count > 0) ASSAY_TRY_VOID(backend.clear(program, tensor.view));
  }
  return {};
}

struct Change {
  bool data = false;
  bool optimizer = false;
};

// The keys of the batch that have other values in the checkpoint.
std::string other_batch(const checkpoint::Checkpoint& from, const spec::JobSpec& job,
                        const std::string& section, std::initializer_list<const char*> keys) {
  const base::Json before = from.manifest().state.extra.value("batch", base::Json::object());
  const base::Json now = batch_facts(job);
  base::Json was = base::Json::object();
  base::Json is = base::Json::object();
  for (const char* key : keys) {
    if (before.contains(key)) was[section + key] = before.at(key);
    if (now.contains(key)) is[section + key] = now.at(key);
  }
  return fmt::format("{}", fmt::join(changes_of(was, is), ", "));
}

std::string other_data(const checkpoint::Checkpoint& from, const spec::JobSpec& job,
                       const base::Json& data) {
  const std::string how = other_batch(from, job, "data.", {"mix", "pack", "mask"});
  const base::Json& extra = from.manifest().state.extra;
  const auto before = extra.find("data");
  if (!how.empty() || before == extra.end() || !before->is_object() || data.is_null() ||
      is_same_data(*before, data)) {
    return how;
  }
  return fmt::format("data.train {} -> {}", data_text(*before), data_text(data));
}

// What differs from the checkpoint's batch, optimizer and data; fails if that is not permitted.
base::Result<Change> check_change(const checkpoint::Checkpoint& from, const spec::JobSpec& job,
                                  const Continue& how) {
  const std::string anew = "; --from CHECKPOINT starts a new run with these weights";
  if (!from.manifest().state.extra.contains("batch")) {
    return base::fail(differs(from, "does not say with which batch it was trained", ""));
  }
  if (const auto batch = other_batch(from, job, "batch.", {"sequence", "sequences"});
      !batch.empty()) {
    return base::fail(differs(from, "was trained with another batch: " + batch,
                              "keep batch.sequence and the sequences of a step" + anew));
  }
  const std::string optimizer = other_batch(from, job, "train.", {"optimizer"});
  if (!optimizer.empty() && !how.new_optimizer) {
    return base::fail(differs(from, "was trained with another optimizer: " + optimizer,
                              "--new-optimizer goes on with this one, its moments at zero" + anew));
  }
  const std::string data = other_data(from, job, how.data);
  if (!data.empty() && !how.new_data) {
    return base::fail(differs(from, "was trained on other data: " + data,
                              "--new-data goes on with this, from its beginning" + anew));
  }
  return Change{.data = !data.empty(), .optimizer = !optimizer.empty()};
}

// Draws a weight on the device, if the device supports it.
base::Result<bool> draw_on_device(Backend& backend, const step::Program& program,
                                  const step::Parameter& parameter, const StateTensor& weight,
                                  std::uint64_t seed) {
  if (parameter.init != step::Init::kNormal) return false;
  InitialDraw draw{.parameter = parameter,
                   .seed = seed,
                   .pieces = weight.pieces(weight.own),
                   .weight = weight.view};
  const std::optional<StateTensor> low = remainder_tensor(program, parameter);
  if (low && low->own.count > 0) {
    draw.remainder = low->view;
    draw.remainder_at = low->own.first - weight.own.first;
  }
  return backend.draw(draw);
}

}  // namespace

base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from,
                               const Continue& how) {
  const checkpoint::TrainingState& state = from.manifest().state;
  if (state.step == 0) {  // imported weights
    // A damaged checkpoint may have left other state in the device.
    ASSAY_TRY_VOID(clear(backend, program, state_tensors(program, StateKind::kOptimizer)));
    ASSAY_TRY_VOID(restore_weights(backend, program, from));
    return Position{};
  }
  const std::string other = other_keys(from, program.model);
  if (state.layout != layout_text(program) || !other.empty()) {
    return base::fail(of_another_model(from, other));
  }
  if (state.seed != static_cast<std::uint64_t>(job.train.seed)) {
    return base::fail(differs(from, fmt::format("was trained with train.seed={}", state.seed),
                              "use the same seed"));
  }
  ASSAY_TRY(const Change change, check_change(from, job, how));
  const auto windows = state.data_cursor.find("windows");
  if (windows == state.data_cursor.end() || !windows->is_number_unsigned()) {
    return base::fail(differs(from, "has no position in the data", ""));
  }
  std::vector<StateTensor> optimizer = state_tensors(program, StateKind::kOptimizer);
  if (change.optimizer) {
    ASSAY_TRY_VOID(clear(backend, program, optimizer));
    // The low halves of weights stay.
    std::erase_if(optimizer,
                  [](const StateTensor& tensor) { return !tensor.name.starts_with("remainder/"); });
  }
  ASSAY_TRY_VOID(read_state(
      from, {{"weights", state_tensors(program, StateKind::kWeights)}, {"optimizer", optimizer}},
      [&](const StateTensor& tensor) {
        return differs(from, fmt::format("has no tensor {} of this type and shape", tensor.name),
                       "resume with the precision it was trained in");
      },
      [&](const step::View& to, std::span<const std::byte> bytes) {
        return backend.write(to, bytes);
      }));
  return Position{state.step, state.tokens, change.data ? 0 : windows->get<std::uint64_t>()};
}

base::Result<void> check_model(const checkpoint::Checkpoint& from, const spec::ModelSpec& model) {
  const std::string other = other_keys(from, model);
  return other.empty() ? base::Result<void>{} : base::fail(of_another_model(from, other));
}

base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from) {
  ASSAY_TRY(const checkpoint::TensorSet set, from.part("weights"));
  for (const step::Parameter& parameter : program.model_parameters) {
    const StateTensor tensor = weight_tensor(program, parameter);
    const checkpoint::StoredTensor* found = set.find(tensor.name);
    if (found == nullptr || found->info.shape != file_info(tensor).shape) {
      if (const std::string other = other_keys(from, program.model); !other.empty()) {
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

std::string keep_recipe(const checkpoint::Checkpoint& from, spec::JobSpec& job,
                        const base::Json& data) {
  const base::Json& extra = from.manifest().state.extra;
  const auto found = extra.find("recipe");
  if (found == extra.end() || !found->is_object()) return kUnknownSettings;
  const base::Json before = recipe_facts(job);
  std::vector<std::string> differences;
  const auto compare = [&](const char* key, bool is_usual) -> const base::Json* {
    const auto there = found->find(key);
    if (there == found->end() || !there->is_number() || *there == before[key]) return nullptr;
    differences.push_back(
        is_usual ? fmt::format("train.{} stays {}", key, there->dump())
                 : fmt::format("train.{} {} -> {}", key, there->dump(), before[key].dump()));
    return is_usual ? &*there : nullptr;
  };
  if (const base::Json* rate = compare("learning_rate", job.train.learning_rate_is_usual)) {
    job.train.learning_rate = rate->get<double>();
  }
  if (const base::Json* warmup = compare("warmup_steps", job.train.warmup_is_usual)) {
    job.train.warmup_steps = warmup->get<std::int64_t>();
  }
  compare("steps", false);
  const auto settings = extra.find("settings");
  const bool known = settings != extra.end() && settings->is_object();
  if (known)
    std::ranges::move(changes_of(*settings, settings_of(job)), std::back_inserter(differences));
  // What restore() had permission for.
  for (const char* of : {"optimizer", "data"}) {
    std::string change = of == std::string_view("data") ? other_data(from, job, data)
                                                        : other_batch(from, job, "train.", {of});
    if (!change.empty()) differences.push_back(std::move(change));
  }
  if (!known) differences.emplace_back(kUnknownSettings);
  return fmt::format("{}", fmt::join(differences, ", "));
}

std::string saved_algorithms(const checkpoint::Checkpoint& from) {
  const base::Json& extra = from.manifest().state.extra;
  const auto found = extra.find("algorithms");
  return found != extra.end() && found->is_string() ? found->get<std::string>() : std::string();
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
  std::vector<float> all;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const step::Range own = weights[i].own;
    if (own.count == 0) continue;
    ASSAY_TRY(const bool drawn,
              draw_on_device(backend, program, program.model_parameters[i], weights[i], seed));
    if (drawn) continue;
    all.resize(std::max(all.size(), static_cast<std::size_t>(own.count)));
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
