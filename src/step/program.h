// Program: a training step as data: buffers, parameters, and the ops in execution order. Pure:
// built from a model, a batch and a few choices, without clock, device or files.
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

// The types in which numbers are stored.
struct Numerics {
  Dtype weights = Dtype::kF32;
  bool remainders = false;  // 16 more bits per bf16 weight, for an exact fp32 master
  Dtype gradients = Dtype::kF32;
  Dtype moments = Dtype::kF32;
  Dtype activations = Dtype::kF32;
  bool fp8_blocks = false;    // the matrix products of blocks use fp8
  bool block_scales = false;  // or mxfp8 or nvfp4, which are planned for other software only
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
  std::int64_t head_rows = 0;  // tokens whose logits exist at once; 0: by vocabulary size
  // For totals (totals.h): the rows that this rank's experts get, as a multiple of an even share.
  // 0, as in programs: the most that the layout allows, for which there must be room.
  double expert_load = 0;
};
Choices choices_of(const spec::JobSpec& job);

struct Program {
  spec::ModelSpec model;
  Choices choices;
  std::vector<Buffer> buffers;
  // Parameters that this rank uses: those of its stage, and a table that is also the head.
  std::vector<Parameter> parameters;
  std::vector<Unit> units;
  // Parameters of all stages; these units have no buffers.
  std::vector<Parameter> model_parameters;
  std::vector<Unit> model_units;
  std::vector<Op> ops;
  // Executed before the first step and whenever weights were written from outside: gathers the
  // weights that a step begins with. After that, each step, and each forward pass of the first
  // micro-batch, ends with the same ops.
  std::vector<Op> prologue;
  View sums;     // of losses: one row per micro-batch, the first kSummedScalars
  View scalars;  // see Scalar
  View logits;   // kLogits only
  View loads;    // for mixtures: slots routed to each expert in the step, one row per mixture

  // This rank's tokens of a sequence, and of a micro-batch.
  [[nodiscard]] SequencePart sequence_part() const {
    return part_of_sequence(choices.sequence, choices.layout.context);
  }
  [[nodiscard]] std::int64_t micro_tokens() const {
    return choices.sequence / choices.layout.context.ranks * choices.micro_batch;
  }
  // Tokens per step of this rank, and of all ranks.
  [[nodiscard]] std::int64_t step_tokens() const { return micro_tokens() * choices.accumulate; }
  [[nodiscard]] std::int64_t global_step_tokens() const {
    return step_tokens() * choices.layout.data().ranks;
  }
  [[nodiscard]] const Unit& unit_of(const Parameter& p) const {
    return units[static_cast<std::size_t>(p.unit)];
  }
  // For a rank that stores the whole unit.
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
  kLossSum,   // sum of -log p(target) over the step's counted targets
  kZLossSum,  // sum of (log Z)^2, unscaled
  kCount,     // number of targets that count (not negative)
  // For mixtures, summed over their layers.
  kBalanceSum,  // sum of experts x sum(share of slots x mean probability), times tokens
  kRouterZSum,  // sum of the router's (log Z)^2, unscaled
  kDropped,     // slots dropped beyond the capacity
  kNorm,        // of all gradients, before clipping
  kClip,        // factor applied to gradients
  kNonFinite,   // 1: the step was skipped
  kScalars,     // number of scalars
};
// The first of them are sums over micro-batches.
inline constexpr std::int64_t kSummedByLoss = 3;
inline constexpr std::int64_t kSummedByRouter = 3;
inline constexpr std::int64_t kSummedScalars = kSummedByLoss + kSummedByRouter;

// The terms that a tensor-parallel rank contributes to a token's loss, fp32: the largest of its
// logits, the sum of exp(logit - largest), and the target's logit, or 0 if another rank has it.
inline constexpr std::int64_t kLossTerms = 3;

// Refuses models, layouts and batches that the trainer cannot execute; the error names the key:
// rules.h.
base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step
