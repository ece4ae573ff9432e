#include "step/program.h"

#include "step/builder.h"
#include "step/optimizer.h"
#include "step/passes.h"
#include "step/rules.h"

namespace assay::step {
namespace {

void add_buffers(Program& p, Sink& sink) {
  const Numerics& n = p.choices.numerics;
  const bool train = p.choices.purpose == Purpose::kTrain;
  for (Unit& unit : p.units) {
    const auto buffer = [&](const char* what, std::int64_t elements, Dtype type, Storage storage) {
      return sink.add({unit.name + what, storage, type, elements});
    };
    const std::int64_t own = unit.own.count;
    unit.weights = buffer("", unit.gathered ? own : unit.elements, n.weights, Storage::kWeights);
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

// Selects this rank's part of the model.
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

void set_scales(std::vector<Parameter>& parameters, const InitialScales& scales) {
  for (Parameter& parameter : parameters) {
    if (parameter.part == ModelPart::kEmbedding) {
      parameter.init_std = scales.embedding;
    } else if (parameter.part == ModelPart::kHead) {
      parameter.init_std = scales.head;
    } else {
      parameter.init_std *= scales.matrices / kInitStd;
    }
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
          .fp8_blocks = precision == spec::Precision::kFp8,
          .block_scales = spec::has_block_scales(precision)};
}

Choices choices_of(const spec::JobSpec& job) {
  return {.numerics = numerics_of(job.train.precision),
          .recompute = job.train.recompute,
          .optimizer = job.train.optimizer,
          .sequence = job.batch.sequence,
          .micro_batch = job.batch.micro_batch,
          .accumulate = job.batch.accumulate,
          .initial = {.matrices = job.train.init_std,
                      .embedding = job.train.embedding_init_std.value_or(job.train.init_std),
                      .head = job.train.head_init_std.value_or(job.train.init_std)},
          .document_mask = job.data.mask == spec::Mask::kDocument};
}

void add_state(Program& p, Sink& sink) {
  const Choices& choices = p.choices;
  p.model_parameters = list_parameters(p.model, choices.optimizer, choices.layout);
  set_scales(p.model_parameters, choices.initial);
  p.model_units = make_units(p.model, choices.layout, p.model_parameters);
  select_stage(p);
  add_buffers(p, sink);
}

void add_scalars(Builder& b) {
  Program& p = b.program();
  const Choices& choices = p.choices;
  if (choices.purpose != Purpose::kLogits) {
    p.sums = b.matrix("sums", choices.accumulate, kSummedScalars, Dtype::kF32, Storage::kScalars);
  }
  p.scalars = b.matrix("scalars", 1, static_cast<std::int64_t>(Scalar::kScalars), Dtype::kF32,
                       Storage::kScalars);
  if (p.model.is_moe() && choices.purpose != Purpose::kLogits) {
    p.loads = b.matrix("expert loads", p.model.moe_layers(), p.model.experts, Dtype::kF32,
                       Storage::kScalars);
  }
}

base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices) {
  ASSAY_TRY_VOID(check(model, choices));
  Program p;
  p.model = model;
  p.choices = choices;
  ProgramSink sink(p);
  add_state(p, sink);
  Builder b(p, sink);
  add_scalars(b);
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
