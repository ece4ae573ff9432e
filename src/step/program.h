// Program: a training step as data: buffers, parameters, and the ops in the order they are
// executed. Pure: made from a model, a batch and a few choices, with no clock, device or file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/buffer.h"
#include "step/context.h"
#include "step/layout.h"
#include "step/op.h"
#include "step/parameter.h"
#include "step/units.h"

namespace assay::step {

// What numbers are kept in.
struct Numerics {
  Dtype weights = Dtype::kF32;
  bool remainders = false;  // bf16 weights with 16 more bits each: an exact fp32 master
  Dtype gradients = Dtype::kF32;
  Dtype moments = Dtype::kF32;
  Dtype activations = Dtype::kF32;
  bool fp8_blocks = false;  // the matrix products of blocks are made in fp8
};
Numerics numerics_of(spec::Precision precision);

enum class Purpose : std::uint8_t {
  kTrain,   // forward, backward, optimizer
  kLoss,    // forward and the loss
  kLogits,  // forward and the logits of every token
};

// Standard deviations of initial weights.
struct InitialScales {
  double matrices = kInitStd;
  double embedding = kInitStd;
  double head = kInitStd;
};

struct Choices {
  Purpose purpose = Purpose::kTrain;
  Numerics numerics;
  Layout layout;
  spec::Recompute recompute = spec::Recompute::kNone;  // not kAuto
  spec::Optimizer optimizer = spec::Optimizer::kAdamw;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  InitialScales initial;
  bool document_mask = false;  // attention stays within documents
  std::int64_t head_rows = 0;  // tokens whose logits exist at a time; 0: by the vocabulary's size
  // Of totals (totals.h): rows that this rank's experts get, of an even share. 0, as programs have
  // it: the most that a layout allows, which there must be room for.
  double expert_load = 0;
};
Choices choices_of(const spec::JobSpec& job);

struct Program {
  spec::ModelSpec model;
  Choices choices;
  std::vector<Buffer> buffers;
  // What this rank has to do with: those of its stage, and a table that is also the head.
  std::vector<Parameter> parameters;
  std::vector<Unit> units;
  // Of all stages; these units have no buffers.
  std::vector<Parameter> model_parameters;
  std::vector<Unit> model_units;
  std::vector<Op> ops;
  // Before the first step, and whenever weights were written from outside: gathers what a step
  // begins with. From then on each step, and each forward pass of the first micro-batch, ends with
  // the same ops.
  std::vector<Op> prologue;
  View sums;     // of losses: a row for each micro-batch, the first kSummedScalars
  View scalars;  // see Scalar
  View logits;   // kLogits only
  View loads;    // of mixtures: slots that chose each expert in the step, a row for each mixture

  // This rank's tokens of a sequence, and of a micro-batch.
  [[nodiscard]] SequencePart sequence_part() const {
    return part_of_sequence(choices.sequence, choices.layout.context);
  }
  [[nodiscard]] std::int64_t micro_tokens() const {
    return choices.sequence / choices.layout.context.ranks * choices.micro_batch;
  }
  // Of this rank, and of all ranks together.
  [[nodiscard]] std::int64_t step_tokens() const { return micro_tokens() * choices.accumulate; }
  [[nodiscard]] std::int64_t global_step_tokens() const {
    return step_tokens() * choices.layout.data().ranks;
  }
  [[nodiscard]] const Unit& unit_of(const Parameter& p) const {
    return units[static_cast<std::size_t>(p.unit)];
  }
  // Of a rank that has all of it.
  [[nodiscard]] View weight(const Parameter& p) const { return view(unit_of(p).weights, p); }
  [[nodiscard]] View gradient(const Parameter& p) const { return view(unit_of(p).gradients, p); }
  [[nodiscard]] std::int64_t bytes_of(const View& view) const {
    return view.elements() * step::bytes_of(buffers[static_cast<std::size_t>(view.buffer)].type);
  }
  [[nodiscard]] double flops() const;

 private:
  static View view(BufferId buffer, const Parameter& p) {
    return {buffer, p.offset, p.rows, p.cols, p.cols};
  }
};

// The step's scalars, fp32, in this order.
enum class Scalar : std::uint8_t {
  kLossSum,   // of -log p(target) over the step's counted targets
  kZLossSum,  // of (log Z)^2, unscaled
  kCount,     // targets that count (not negative)
  // Of mixtures, added up over their layers.
  kBalanceSum,  // of experts x sum(share of slots x mean probability), times tokens
  kRouterZSum,  // of (log Z)^2 of the router, unscaled
  kDropped,     // slots beyond the capacity
  kNorm,        // of all gradients, before clipping
  kClip,        // what gradients are multiplied with
  kNonFinite,   // 1: the step was left out
  kScalars,     // how many there are
};
// The first of them are sums over micro-batches.
inline constexpr std::int64_t kSummedByLoss = 3;
inline constexpr std::int64_t kSummedByRouter = 3;
inline constexpr std::int64_t kSummedScalars = kSummedByLoss + kSummedByRouter;

// What a tensor-parallel rank knows of a token's loss, fp32: the largest of its logits, the sum of
// exp(logit - largest), and the target's logit, or 0 if another rank has it.
inline constexpr std::int64_t kLossTerms = 3;

// Models, layouts and batches that the trainer cannot execute are refused, naming the key: rules.h.
base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step
