// Program: a training step as data: buffers, parameters, and the ops in the order they are
// executed. Pure: made from a model, a batch and a few choices, with no clock, device or file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/buffer.h"
#include "step/layout.h"
#include "step/op.h"

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

// How an optimizer treats parameters. Those of a group lie side by side in one buffer, so that one
// op updates all of them and a shard of the group is a range.
enum class Group : std::uint8_t {
  kMuon,       // matrices of the blocks, where the optimizer is Muon
  kDecayed,    // other matrices and embeddings: AdamW with weight decay
  kUndecayed,  // norms and biases: AdamW without
};
inline constexpr int kGroups = 3;

enum class Init : std::uint8_t { kNormal, kOnes, kZeros };

struct Parameter {
  std::string name;  // "layers.3.qkv", "layers.3.qkv_bias", "embedding"
  Part part = Part::kQkv;
  std::int32_t layer = kNoLayer;
  Group group = Group::kDecayed;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t offset = 0;        // elements into its group
  std::int64_t padding_rows = 0;  // zeros after the last row, for matrix products of a round size
  Init init = Init::kNormal;
  double init_std = 0;

  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
};

// The buffers of one group; -1 where there is none. Weights and gradients are of the whole group,
// the optimizer's state of this rank's range.
struct GroupBuffers {
  std::int64_t elements = 0;
  Range own;
  BufferId weights = -1;
  BufferId remainders = -1;
  BufferId gradients = -1;
  BufferId first_moment = -1;
  BufferId second_moment = -1;
};

enum class Purpose : std::uint8_t {
  kTrain,   // forward, backward, optimizer
  kLoss,    // forward and the loss
  kLogits,  // forward and the logits of every token
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
  std::int64_t head_rows = 0;  // tokens whose logits exist at a time; 0: by the vocabulary's size
};
Choices choices_of(const spec::JobSpec& job);

struct Program {
  spec::ModelSpec model;
  Choices choices;
  std::vector<Buffer> buffers;
  std::vector<Parameter> parameters;
  GroupBuffers groups[kGroups];
  std::vector<Op> ops;
  View tokens;   // of one micro-batch
  View targets;  // likewise; none for kLogits
  View scalars;  // see Scalar
  View logits;   // kLogits only

  [[nodiscard]] std::int64_t micro_tokens() const { return choices.sequence * choices.micro_batch; }
  // Of this rank, and of all ranks together.
  [[nodiscard]] std::int64_t step_tokens() const { return micro_tokens() * choices.accumulate; }
  [[nodiscard]] std::int64_t global_step_tokens() const {
    return step_tokens() * choices.layout.data.ranks;
  }
  [[nodiscard]] const GroupBuffers& of(Group group) const {
    return groups[static_cast<int>(group)];
  }
  [[nodiscard]] View weight(const Parameter& p) const { return view(of(p.group).weights, p); }
  [[nodiscard]] View gradient(const Parameter& p) const { return view(of(p.group).gradients, p); }
  [[nodiscard]] std::int64_t bytes_of(const View& view) const {
    return view.elements() * step::bytes_of(buffers[static_cast<std::size_t>(view.buffer)].type);
  }
  // Which elements of a parameter lie in the rank's range of its group.
  [[nodiscard]] Range part_of(const Parameter& p, std::int64_t rank) const {
    const std::int64_t count = of(p.group).own.count;
    const Range part = Range{rank * count, count}.common({p.offset, p.elements()});
    return {part.first - p.offset, part.count};
  }
  [[nodiscard]] double flops() const;

 private:
  static View view(BufferId buffer, const Parameter& p) {
    return {buffer, p.offset, p.rows, p.cols, p.cols};
  }
};

// The step's scalars, fp32, in this order.
enum class Scalar : std::uint8_t {
  kLossSum,    // of -log p(target) over the step's counted targets
  kZLossSum,   // of (log Z)^2, unscaled
  kCount,      // targets that count (not negative)
  kNorm,       // of all gradients, before clipping
  kClip,       // what gradients are multiplied with
  kNonFinite,  // 1: the step was left out
  kScalars,    // how many there are
};
// The first of them are sums, which ranks add up.
inline constexpr std::int64_t kSummedScalars = 3;

// Models that the trainer cannot execute (mixtures, value embeddings, residual lambdas) are
// refused, naming the key.
base::Result<Program> build(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step
