#include "step/program.h"

#include <fmt/format.h>

#include "base/error.h"
#include "step/builder.h"

namespace assay::step {
namespace {

base::Result<void> check_tensor_parallel(const spec::ModelSpec& model, const Choices& choices) {
  const std::int64_t ranks = choices.layout.tensor.ranks;
  if (ranks == 1) return {};
  const auto refuse = [&](const std::string& what, const char* hint) {
    return base::fail(base::usage_error("layout.tp", what, hint));
  };
  if (choices.optimizer == spec::Optimizer::kMuon) {
    return refuse("Muon updates whole matrices, and tensor-parallel ranks have parts of them",
                  "set layout.tp=1, or train.optimizer=adamw");
  }
  for (const auto& [key, count] : {std::pair{"model.heads", model.heads},
                                   {"model.kv_heads", model.kv_heads},
                                   {"model.ffn", model.ffn}}) {
    if (count % ranks == 0) continue;
    return refuse(fmt::format("{} {} cannot be divided by {} ranks", key, count, ranks),
                  "choose a divisor");
  }
  const std::int64_t tokens = choices.sequence / choices.layout.context.ranks * choices.micro_batch;
  if (tokens % ranks != 0) {
    return refuse(
        fmt::format("{} tokens of a micro-batch cannot be divided by {} ranks", tokens, ranks),
        "choose a divisor of batch.sequence");
  }
  return {};
}

base::Result<void> check_mixture(const spec::ModelSpec& model, const Choices& choices) {
  if (!model.is_moe()) return {};
  if (model.bias) {
    return base::fail(base::usage_error("model.bias", "experts with biases cannot be trained yet",
                                        "leave it out"));
  }
  if (choices.optimizer == spec::Optimizer::kMuon) {
    return base::fail(base::usage_error("train.optimizer",
                                        "Muon cannot update the matrices of experts yet",
                                        "set train.optimizer=adamw"));
  }
  if (choices.layout.context.ranks > 1) {
    return base::fail(base::usage_error(
        "layout.cp", "the load of experts is balanced over whole sequences", "set layout.cp=1"));
  }
  const std::int64_t tensor = choices.layout.tensor.ranks;
  for (const auto& [key, width] : {std::pair{"model.expert_ffn", model.expert_width()},
                                   {"model.shared_ffn", model.shared_ffn}}) {
    if (width % tensor == 0) continue;
    return base::fail(base::usage_error(
        "layout.tp", fmt::format("{} {} cannot be divided by {} ranks", key, width, tensor),
        "choose a divisor"));
  }
  return {};
}

base::Result<void> check(const spec::ModelSpec& model, const Choices& choices) {
  const auto refuse = [](const char* key, const char* what) {
    return base::fail(base::usage_error(key, what, "leave it out, or choose another model"));
  };
  ASSAY_TRY_VOID(check_mixture(model, choices));
  if (model.value_embeddings) {
    return refuse("model.value_embeddings", "value embeddings cannot be trained yet");
  }
  if (model.residual_lambdas) {
    return refuse("model.residual_lambdas", "residual lambdas cannot be trained yet");
  }
  const Layout& layout = choices.layout;
  if (layout.chunks > 1 && choices.accumulate % layout.pipeline.ranks != 0) {
    return base::fail(
        base::usage_error("batch.accumulate",
                          fmt::format("{} micro-batches cannot be interleaved over {} stages",
                                      choices.accumulate, layout.pipeline.ranks),
                          "choose a multiple of layout.pp"));
  }
  if (const std::int64_t ranks = layout.context.ranks;
      ranks > 1 && choices.sequence % (2 * ranks) != 0) {
    return base::fail(base::usage_error(
        "batch.sequence",
        fmt::format("{} tokens cannot be cut into two pieces for each of layout.cp={} ranks",
                    choices.sequence, ranks),
        fmt::format("choose a multiple of {}", 2 * ranks)));
  }
  ASSAY_TRY_VOID(check_tensor_parallel(model, choices));
  if (choices.optimizer == spec::Optimizer::kMuon && choices.layout.gathers_weights()) {
    return base::fail(base::usage_error(
        "layout.zero", "Muon updates whole matrices, and zero 3 keeps parts of them",
        "set layout.zero=2"));
  }
  return {};
}

void add_buffers(Program& p) {
  const Numerics& n = p.choices.numerics;
  const bool train = p.choices.purpose == Purpose::kTrain;
  for (Unit& unit : p.units) {
    const auto buffer = [&](const char* what, std::int64_t elements, Dtype type, Storage storage) {
      p.buffers.push_back({unit.name + what, storage, type, elements});
      return static_cast<BufferId>(p.buffers.size() - 1);
    };
    const std::int64_t own = unit.own.count;
    unit.weights = buffer("", p.choices.layout.gathers_weights() ? own : unit.elements, n.weights,
                          Storage::kWeights);
    if (!train) continue;
    if (n.remainders) {
      unit.remainders = buffer(" remainders", own, Dtype::kU16, Storage::kRemainders);
    }
    unit.gradients = buffer(" gradients", own, n.gradients, Storage::kGradients);
    if (p.model.tied && unit.name == "embedding") {
      unit.head_gradients = buffer(" head gradients", own, n.gradients, Storage::kGradients);
    }
    unit.first_moment = buffer(" first moment", own, n.moments, Storage::kMoments);
    if (unit.whole_matrices) continue;
    unit.second_moment = buffer(" second moment", own, n.moments, Storage::kMoments);
  }
}

// What this rank has of the model.
void select_stage(Program& p) {
  const Layout& layout = p.choices.layout;
  std::vector<std::int32_t> index(p.model_units.size(), -1);
  for (std::size_t i = 0; i < p.model_units.size(); ++i) {
    const Unit& unit = p.model_units[i];
    const bool is_head = p.model.tied && layout.last_stage() && unit.name == "embedding";
    if (unit.stage != layout.pipeline.rank && !is_head) continue;
    index[i] = static_cast<std::int32_t>(p.units.size());
    p.units.push_back(unit);
  }
  for (const Parameter& parameter : p.model_parameters) {
    const std::int32_t unit = index[static_cast<std::size_t>(parameter.unit)];
    if (unit < 0) continue;
    p.parameters.push_back(parameter);
    p.parameters.back().unit = unit;
  }
}

}  // namespace

Numerics numerics_of(spec::Precision precision) {
  if (precision == spec::Precision::kFp32) return {};
  const Dtype half = precision == spec::Precision::kFp16 ? Dtype::kFp16 : Dtype::kBf16;
  return {.weights = half,
          .remainders = true,
          .gradients = half,
          .moments = half,
          .activations = half,
          .fp8_blocks = precision == spec::Precision::kFp8};
}

Choices choices_of(const spec::JobSpec& job) {
  return {.numerics = numerics_of(job.train.precision),
          .recompute = job.train.recompute,
          .optimizer = job.train.optimizer,
          .sequence = job.batch.sequence,
          .micro_batch = job.batch.micro_batch,
          .accumulate = job.batch.accumulate};
}

base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices) {
  ASSAY_TRY_VOID(check(model, choices));
  Program p;
  p.model = model;
  p.choices = choices;
  p.model_parameters = list_parameters(model, choices.optimizer, choices.layout);
  p.model_units = make_units(model, choices.layout, p.model_parameters);
  select_stage(p);
  add_buffers(p);
  Builder b(p);
  if (choices.purpose != Purpose::kLogits) {
    p.sums = b.matrix("sums", choices.accumulate, kSummedScalars, Dtype::kF32, Storage::kScalars);
  }
  p.scalars = b.matrix("scalars", 1, static_cast<std::int64_t>(Scalar::kScalars), Dtype::kF32,
                       Storage::kScalars);
  if (model.is_moe() && choices.purpose != Purpose::kLogits) {
    p.loads =
        b.matrix("expert loads", model.moe_layers(), model.experts, Dtype::kF32, Storage::kScalars);
  }
  build_passes(b);
  if (choices.purpose == Purpose::kLogits) return p;
  b.begin_pass(0, 0);
  choices.purpose == Purpose::kTrain ? build_optimizer(b) : add_losses(b);
  return p;
}

double Program::flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

}  // namespace assay::step
