// Op: one operation of a training step, as the trainer executes it (program.h). A backend logs what
// it executed in the same terms (train/backend.h), so that a test can compare the two. Of the
// same ops, the planner prices those of a micro-batch (totals.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "step/buffer.h"
#include "step/layout.h"

namespace assay::step {

// Operands in order; those in brackets are optional.
enum class OpKind : std::uint8_t {
  kEmbed,          // tokens, table, [positions] -> x
  kEmbedGrad,      // tokens, dx -> dtable
  kPositionsGrad,  // dx -> dpositions
  kNorm,           // x, [weight], [bias] -> h
  kNormGrad,       // dh, x, [weight], [residual] -> dx (+ residual), [dweight], [dbias]
  kMatmul,         // a, b, [residual], [bias], [scales of a, b] -> c = a b (+ residual + bias)
  kScale,          // x, [first rows] -> the power of two that no element exceeds
  kQuantise,       // x, scale, [first rows] -> x in fp8, or its transpose, or both
  kBiasGrad,       // dy -> dbias
  kHeadNorm,       // heads, [weight] -> normalised heads
  kHeadNormGrad,   // dy, heads, [weight] -> dheads, [dweight]
  kRotate,         // -> heads, in place
  kRotateGrad,     // -> dheads, in place
  // q, k, v, [documents] -> o, log-sum-exp; causal, the last query sees all keys of its sequence
  kAttention,
  kAttentionGrad,  // q, k, v, o, log-sum-exp, do, [documents] -> dq, dk, dv
  // For context parallelism (context.cc); k|v are keys and values side by side.
  kPackKeys,       // k, v -> k|v
  kOrderKeys,      // k|v of every context rank -> in sequence order
  kSplitKeysGrad,  // d(k|v) from queries of the first and of the second piece -> their sum, by rank
  kSumKeysGrad,    // d(k|v), one row per context rank -> their sum, rounded once
  kActivate,       // gate|up, or up, [router weights, slots] -> a
  kActivateGrad,   // gate|up, da, [router weights, slots] -> dgate|dup, [drouter weights], [a]
  // Mixtures (mixture.cc). A slot is one of the k choices of a token; rows are the slots sorted by
  // expert, then by token.
  kRoute,      // logits, [bias] -> router weights, experts, counts, [sums of losses, loads]
  kRouteGrad,  // logits, router weights, experts, rows, counts, drouter weights -> dlogits, [dbias]
  // experts -> rows of slots (-1: dropped), slots of rows, first rows of experts, [their counts]
  kSortRows,
  kGatherRows,     // x, slots -> for each row, its token's x
  kGroupedMatmul,  // a, b, first rows, [scales of a, b] -> c: see Op::pieces and Op::scaled
  kCombineRows,    // x, rows, [residual] -> for each token, the sum of its rows (+ residual)
  // For expert parallelism (expert_exchange.h). Row counts have one row per rank and one column per
  // expert of a rank.
  // counts sent, counts received -> first row of each of this rank's experts' pieces, the received
  // row at each position in expert order (-1: none), the position of each received row
  kArrangeRows,
  kPermuteRows,   // x, index -> row i is row index[i] of x; unchanged where index is negative
  kLossTerms,     // logits, targets -> for each token: largest logit, sum of exp, target's logit
  kLoss,          // logits, targets, [terms of every tensor-parallel rank] -> dlogits, sums
  kSum,           // x, one row per rank, [residual], [bias] -> their sum, rounded once
  kFold,          // gradients, a row per micro-batch -> their sum, row after row; one row: a copy
  kNormSums,      // gradients -> sums of squares, per block of equal size
  kGradientNorm,  // sums of squares… -> norm
  kAdamw,         // gradient, norm -> weight, [remainder], first moment, second moment
  kMuon,          // gradient, norm -> weight, [remainder], momentum
  kBalance,       // deviation of the load from the mean, norm -> router bias, [remainder]
  kStepSums,      // sums of micro-batches, by rank -> sums of the step
  // -> tokens (part kEmbedding), targets (kLoss), or both (kEmbedding), [documents]
  kRead,
  // Exchanges among the ranks along Op::axis: they copy, and never add. The op starts the exchange,
  // which owns its buffers until the kWait with the same ticket.
  kAllGather,  // this rank's range of x -> x
  kAllToAll,   // x, a range for each rank -> this rank's range of every rank's x, one row each
  // x, rows sorted by rank; counts sent; counts received -> the received rows, sorted by rank
  kExchangeRows,
  kSend,     // x -> to Op::peer
  kReceive,  // -> x, from Op::peer
  kWait,     // ends an exchange; operands are those of its issue
};

// kOptimizer: everything after the last micro-batch.
enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };

// The part of the model that an op belongs to.
enum class ModelPart : std::uint8_t {
  kEmbedding,
  kPositions,
  kAttentionNorm,
  kQkv,
  kQueryNorm,
  kKeyNorm,
  kRope,
  kAttention,
  kAttentionOut,
  kMlpNorm,
  kGateUp,
  kActivation,
  kDown,
  kRouter,  // of a mixture; its experts are kGateUp and kDown
  kSharedGateUp,
  kSharedDown,
  kFinalNorm,
  kHead,
  kLoss,
  kDecayed,  // from here on: the optimizer's parameter groups
  kUndecayed,
  kAllGroups,
};

std::string_view to_text(OpKind kind);
std::string_view to_text(Phase phase);
std::string_view to_text(ModelPart part);

inline constexpr std::int32_t kNoLayer = -1;

struct Op {
  OpKind kind = OpKind::kMatmul;
  Phase phase = Phase::kForward;
  ModelPart part = ModelPart::kQkv;
  std::int32_t layer = kNoLayer;
  std::int32_t micro = 0;  // which of the step's micro-batches; 0 in the optimizer
  std::vector<View> in;
  std::vector<View> out;
  std::uint8_t adds = 0;     // bit i: out[i] is added to, not overwritten
  bool transpose_a = false;  // for kQuantise with one result: it is the transpose
  bool transpose_b = false;
  bool residual = false;  // kMatmul, kSum or kNormGrad has a residual
  bool bias = false;      // likewise
  // For kMatmul, kGroupedMatmul: a and b are fp8, and the last operands are their scales. Those of
  // a kGroupedMatmul are then contiguous along the summed dimension, regardless of the transposes.
  bool scaled = false;
  Axis axis = Axis::kNone;    // for exchanges and their kWait
  std::int32_t ticket = -1;   // likewise: identifies the exchange within the step
  std::int32_t peer = -1;     // for kSend, kReceive and their kWait: a rank along the axis
  std::int32_t unit = -1;     // the unit (Program::units) that is exchanged or updated
  std::int64_t element = -1;  // for updates: index of the first element among all of the model's
  // For kAttention and kAttentionGrad: the number of sequences in the rows.
  std::int64_t sequences = 1;
  // For kRead, kAttention, kAttentionGrad: the last operand holds, for each token, the position of
  // its document's first token in the sequence, from 0. Queries see no keys before that.
  bool documents = false;
  // For kEmbed, kEmbedGrad, kLossTerms, kLoss: the token that belongs to the first row of the
  // table, or the first column of the logits; tokens of other ranks are left out.
  std::int64_t first_token = 0;
  std::int64_t most_rows = 0;  // kSortRows: capacity of an expert; further slots are dropped
  bool adds_losses = false;    // kRouteGrad: adds the gradients of the router's own losses
  // For kGroupedMatmul, and a kQuantise for it: the number of pieces that an expert's rows consist
  // of, one for each rank they came from, each with a first row. Rows are multiplied piece by
  // piece, as on the rank that sent them, so that results have the same bits; gradients of weights
  // are one product per expert.
  std::int64_t pieces = 1;
  double flops = 0;  // of matrix products and attention; other ops are priced by bytes

  [[nodiscard]] bool is_exchange() const { return axis != Axis::kNone; }
  // For exchanges: the number of elements in total, of which every rank along the axis has a part;
  // for kExchangeRows, where the number received depends on the tokens, those of this rank's own
  // tokens.
  [[nodiscard]] std::int64_t exchanged_elements() const;
  [[nodiscard]] bool adds_to(std::size_t output) const { return ((adds >> output) & 1U) != 0; }
};

// "backward layer 3 micro 0 matmul gate_up 2048x768x128 …": one line per op, without positions in
// memory: what is computed, and the sizes of operands.
struct Program;
std::string to_text(const Op& op, const Program& program);

// The bytes that an op reads and writes: operands once, results once, and once more if they are
// added to or changed in place; for table lookups only the rows. Determines the time of
// memory-bound ops.
struct MovedBytes {
  std::int64_t read = 0;
  std::int64_t written = 0;

  [[nodiscard]] double total() const { return static_cast<double>(read + written); }
};

MovedBytes moved_bytes(const Op& op, const std::vector<Buffer>& buffers);

}  // namespace assay::step
