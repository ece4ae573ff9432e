// step_dump PRESET OUT DEVICE STEPS [from=CHECKPOINT] [KEY=VALUE…]: initial weights, logits, loss
// and every gradient of a model's first step, and the losses of STEPS steps, which compare.py
// compares with PyTorch.
//
// OUT/checkpoints/step-0 has the weights, OUT/step.safetensors the rest. Tokens come from a
// formula that compare.py repeats. With `from` the model and its weights are a checkpoint's, such
// as import-hf makes.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "assay-train/device.h"
#include "spec/load.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/write.h"
#include "train/float_bits.h"
#include "train/planned_step.h"
#include "train/resume.h"
#include "train/step_settings.h"

namespace assay {
namespace {

using train::Backend;

// Of data.mask = "document": whether the i-th token of a micro-batch is a document's first.
bool begins_document(std::size_t i) {
  return i % 37 == 0 || i % 53 == 0;
}

base::Result<void> fill(const step::Program& program, std::int64_t step, std::int32_t micro,
                        std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
  const auto token = [&](std::size_t i) {
    const auto at =
        static_cast<std::uint64_t>(i) + static_cast<std::uint64_t>(step * 1000003 + micro * 10007);
    return static_cast<std::int32_t>((at * at * 31 + at * 17 + 5) % 104729 %
                                     static_cast<std::uint64_t>(program.model.vocab));
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(i);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i] = program.choices.document_mask && begins_document(i + 1) ? -1 : token(i + 1);
  }
  return {};
}

base::Result<void> fill_documents(const step::Program& program, std::span<std::int32_t> documents) {
  const auto sequence = static_cast<std::size_t>(program.choices.sequence);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i % sequence == 0 || begins_document(i)) begin = i % sequence;
    documents[i] = static_cast<std::int32_t>(begin);
  }
  return {};
}

// The same in every micro-batch.
double counted_targets(const step::Program& program) {
  double count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(program.micro_tokens()); ++i) {
    count += program.choices.document_mask && begins_document(i + 1) ? 0 : 1;
  }
  return count * static_cast<double>(program.choices.accumulate);
}

base::Result<std::vector<float>> floats(Backend& backend, const step::Program& program,
                                        const step::View& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  if (program.buffers[static_cast<std::size_t>(view.buffer)].type == step::Dtype::kF32) {
    ASSAY_TRY_VOID(backend.read(view, std::as_writable_bytes(std::span(values))));
    return values;
  }
  std::vector<std::uint16_t> halves(values.size());
  ASSAY_TRY_VOID(backend.read(view, std::as_writable_bytes(std::span(halves))));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = train::from_bf16(halves[i]);
  return values;
}

checkpoint::Tensor tensor(const std::string& name, std::vector<std::int64_t> shape,
                          const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return checkpoint::owned_tensor({name, checkpoint::TensorDtype::kF32, std::move(shape)},
                                  {bytes.begin(), bytes.end()});
}

base::Result<void> add_logits(const spec::JobSpec& job, const std::string& device_name,
                              const checkpoint::Checkpoint& from,
                              std::vector<checkpoint::Tensor>& tensors) {
  spec::JobSpec copy = job;
  ASSAY_TRY(const cli::TrainingDevice device, cli::choose_device(device_name, copy));
  step::Choices choices = step::choices_of(copy);
  choices.purpose = step::Purpose::kLogits;
  choices.recompute = spec::Recompute::kNone;
  ASSAY_TRY(const step::Program program, step::build(job.model, choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY_VOID(device.backend->prepare(program, plan));
  ASSAY_TRY_VOID(train::restore_weights(*device.backend, program, from));
  ASSAY_TRY_VOID(train::run_step(
      *device.backend, program, {},
      [&](std::int32_t micro, auto tokens, auto targets) {
        return fill(program, 0, micro, tokens, targets);
      },
      [&](std::int32_t, auto documents) { return fill_documents(program, documents); }));
  ASSAY_TRY(const std::vector<float> logits, floats(*device.backend, program, program.logits));
  tensors.push_back(tensor("logits", {program.logits.rows, program.logits.cols}, logits));
  return {};
}

float scalar(const train::Scalars& scalars, step::Scalar which) {
  return scalars[static_cast<std::size_t>(which)];
}

// The losses of routers, added up over layers, and how many of a layer's slots each expert got.
base::Result<void> add_router(Backend& backend, const step::Program& program,
                              const spec::TrainSpec& train, const train::Scalars& scalars,
                              std::vector<checkpoint::Tensor>& tensors) {
  const auto tokens = static_cast<float>(program.step_tokens());
  tensors.push_back(tensor("router_losses", {2},
                           {scalar(scalars, step::Scalar::kBalanceSum) / tokens,
                            scalar(scalars, step::Scalar::kRouterZSum) / tokens}));
  tensors.push_back(
      tensor("router_settings", {3},
             {static_cast<float>(train.balance_loss), static_cast<float>(train.router_z_loss),
              static_cast<float>(train.balance_rate)}));
  ASSAY_TRY(const std::vector<float> loads, floats(backend, program, program.loads));
  tensors.push_back(tensor("expert_loads", {program.loads.rows, program.loads.cols}, loads));
  return {};
}

base::Result<void> dump(int argc, char** argv) {
  std::vector<std::string> sets(argv + 5, argv + argc);
  const std::filesystem::path out = argv[2];
  const std::string device_name = argv[3];
  const std::int64_t steps = std::stoll(argv[4]);
  std::optional<checkpoint::Checkpoint> start;
  constexpr std::string_view kFrom = "from=";
  if (!sets.empty() && sets.front().starts_with(kFrom)) {
    ASSAY_TRY(start, checkpoint::Checkpoint::open(sets.front().substr(kFrom.size())));
    sets.erase(sets.begin());
  }
  ASSAY_TRY(spec::Loaded loaded, spec::load(argv[1], {.overrides = sets}));
  auto job = std::get<spec::JobSpec>(loaded.spec);
  if (start) {
    ASSAY_TRY(job.model, train::model_of(*start));
  }
  std::vector<checkpoint::Tensor> tensors;
  std::vector<float> losses;
  std::vector<float> norms;
  {
    ASSAY_TRY(cli::TrainingDevice device, cli::choose_device(device_name, job));
    ASSAY_TRY(const train::ExecutableStep planned,
              train::plan_step(job, step::choices_of(job),
                               train::memory_budget(*device.backend, device.available_bytes)));
    const step::Program& program = planned.program;
    Backend& backend = *device.backend;
    ASSAY_TRY_VOID(backend.prepare(program, planned.plan));
    if (start) {
      ASSAY_TRY_VOID(train::restore_weights(backend, program, *start));
    } else {
      ASSAY_TRY_VOID(
          train::initialise(backend, program, static_cast<std::uint64_t>(job.train.seed)));
    }
    ASSAY_TRY(checkpoint::Snapshot snapshot, train::take_snapshot(backend, program, job, {}));
    ASSAY_TRY_VOID(checkpoint::prepare_root(out / "checkpoints"));
    ASSAY_TRY_VOID(checkpoint::write_checkpoint(out / "checkpoints", snapshot));
    for (std::int64_t step = 0; step < steps; ++step) {
      const spec::TrainSpec& t = job.train;
      const train::StepSettings settings{
          .step = step + 1,
          .learning_rate = t.learning_rate * train::schedule(t, step + 1, steps),
          .beta1 = t.beta1,
          .beta2 = t.beta2,
          .epsilon = t.epsilon,
          .weight_decay = t.weight_decay,
          .clip = t.clip,
          .counted_targets = counted_targets(program),
          .balance_loss = t.balance_loss,
          .router_z_loss = t.router_z_loss,
          .balance_rate = t.balance_rate};
      ASSAY_TRY(
          const train::Scalars scalars,
          train::run_step(
              backend, program, settings,
              [&](std::int32_t micro, auto tokens, auto targets) {
                return fill(program, step, micro, tokens, targets);
              },
              [&](std::int32_t, auto documents) { return fill_documents(program, documents); }));
      losses.push_back(scalar(scalars, step::Scalar::kLossSum) /
                       scalar(scalars, step::Scalar::kCount));
      norms.push_back(scalar(scalars, step::Scalar::kNorm));
      if (step == 0 && program.model.is_moe()) {
        ASSAY_TRY_VOID(add_router(backend, program, t, scalars, tensors));
      }
      for (const step::Parameter& p : program.parameters) {
        if (step > 0) break;
        ASSAY_TRY(const std::vector<float> values, floats(backend, program, program.gradient(p)));
        tensors.push_back(tensor("gradient/" + p.name, {p.rows, p.cols}, values));
      }
    }
  }
  ASSAY_TRY(const checkpoint::Checkpoint from,
            checkpoint::Checkpoint::open(out / "checkpoints" / "step-0"));
  ASSAY_TRY_VOID(add_logits(job, device_name, from, tensors));
  const auto count = static_cast<std::int64_t>(losses.size());
  tensors.push_back(tensor("losses", {count}, losses));
  tensors.push_back(tensor("norms", {count}, norms));
  ASSAY_TRY_VOID(checkpoint::write_safetensors(out / "step.safetensors", tensors));
  return {};
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: step_dump PRESET OUT DEVICE STEPS [from=CHECKPOINT] [KEY=VALUE...]\n",
               stderr);
    return 64;
  }
  const auto done = assay::dump(argc, argv);
  if (!done) std::fprintf(stderr, "step_dump: %s\n", done.error().line().c_str());
  return done ? 0 : 1;
}
