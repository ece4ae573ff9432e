// Op: one operation of a training step, as the trainer executes it (program.h). A backend logs what
// it executed in the same terms (train/backend.h), so that a test can compare the two. The planner
// prices the same ops, added up (totals.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "step/buffer.h"
#include "step/layout.h"

namespace assay::step {

// Operands in order; [x] may be missing. T tokens, d width, S sequence.
enum class Kind : std::uint8_t {
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
  // q, k, v, [documents] -> o, log-sum-exp: of each sequence's keys, the last query sees all
  kAttention,
  kAttentionGrad,  // q, k, v, o, log-sum-exp, do, [documents] -> dq, dk, dv
  // Where ranks share sequences (context.cc); k|v are keys and values side by side.
  kPackKeys,       // k, v -> k|v
  kOrderKeys,      // k|v of every context rank -> in the order of the sequences
  kSplitKeysGrad,  // d(k|v) by the queries of the first piece, of the second -> their sum, by rank
  kSumKeysGrad,    // d(k|v), a row of each context rank -> their sum, rounded once
  kActivate,       // gate|up, or up, [router weights, slots] -> a
  kActivateGrad,   // gate|up, da, [router weights, slots] -> dgate|dup, [drouter weights], [a]
  // Mixtures (mixture.cc). A slot is one of the k choices of a token; rows are the slots in the
  // order of experts, each expert's in the order of tokens.
  kRoute,      // logits, [bias] -> router weights, experts, counts, [sums of losses, loads]
  kRouteGrad,  // logits, router weights, experts, rows, counts, drouter weights -> dlogits, [dbias]
  // experts -> rows of slots (-1: dropped), slots of rows, first rows of experts, [their counts]
  kSortRows,
  kGatherRows,     // x, slots -> for each row, its token's x
  kGroupedMatmul,  // a, b, first rows, [scales of a, b] -> c: see Op::pieces and Op::scaled
  kCombineRows,    // x, rows, [residual] -> for each token, the sum of its rows (+ residual)
  // Where ranks have different experts (expert_exchange.h); counts are of rows: a row for each
  // rank, a column for each of the experts that one rank has.
  // counts sent, counts received -> first rows of own experts' pieces, the received row at each
  // place in their order (-1: none), the place of each received row
  kArrangeRows,
  kPermuteRows,   // x, index -> row index[i] of x at i; where that is negative, nothing
  kLossTerms,     // logits, targets -> for each token: largest logit, sum of exp, target's logit
  kLoss,          // logits, targets, [terms of every tensor-parallel rank] -> dlogits, sums
  kSum,           // x, a row of each rank, [residual], [bias] -> their sum, rounded once
  kFold,          // gradients, a row per micro-batch -> their sum, row after row; one row: a copy
  kNormSums,      // gradients -> sums of squares, of blocks of equal size
  kGradientNorm,  // sums of squares… -> norm
  kAdamw,         // gradient, norm -> weight, [remainder], first moment, second moment
  kMuon,          // gradient, norm -> weight, [remainder], momentum
  kBalance,       // load above or below the mean, norm -> router bias, [remainder]
  kStepSums,      // sums of micro-batches, by rank -> those of the step
  // -> tokens (part kEmbedding), targets (kLoss), or both (kEmbedding), [documents]
  kRead,
  // Exchanges among the ranks along Op::axis: these copy, and never add. Each is issued here, and
  // its buffers are its own until the kWait with the same ticket.
  kAllGather,  // this rank's range of x -> x
  kAllToAll,   // x, a range for each rank -> this rank's range of every rank's x, a row each
  // x, rows in the order of ranks; counts sent; counts received -> their rows, in the same order
  kExchangeRows,
  kSend,     // x -> to Op::peer
  kReceive,  // -> x, from Op::peer
  kWait,     // ends an exchange; operands are those of its issue
};

// kOptimizer: whatever comes after the last micro-batch.
enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };

// Where in the model.
enum class Part : std::uint8_t {
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
  kRouter,  // of a mixture, whose experts are kGateUp and kDown
  kSharedGateUp,
  kSharedDown,
  kFinalNorm,
  kHead,
  kLoss,
  kMatrices,  // the parameter groups of the optimizer
  kDecayed,
  kUndecayed,
  kAllGroups,
};

std::string_view to_text(Kind kind);
std::string_view to_text(Phase phase);
std::string_view to_text(Part part);

inline constexpr std::int32_t kNoLayer = -1;

struct Op {
  Kind kind = Kind::kMatmul;
  Phase phase = Phase::kForward;
  Part part = Part::kQkv;
  std::int32_t layer = kNoLayer;
  std::int32_t micro = 0;  // which of the step's micro-batches; 0 in the optimizer
  std::vector<View> in;
  std::vector<View> out;
  std::uint8_t adds = 0;     // bit i: out[i] is added to, not overwritten
  bool transpose_a = false;  // of a kQuantise with one result: that is the transpose
  bool transpose_b = false;
  bool residual = false;  // kMatmul, kSum or kNormGrad has one
  bool bias = false;      // likewise
  // Of kMatmul, kGroupedMatmul: a and b are fp8, and their scales come last. Those of a
  // kGroupedMatmul then lie along what is summed, whatever its transposes say of the product.
  bool scaled = false;
  Axis axis = Axis::kNone;    // of an exchange and its kWait
  std::int32_t ticket = -1;   // likewise: which exchange of the step
  std::int32_t peer = -1;     // of kSend, kReceive and their kWait: a rank along the axis
  std::int32_t unit = -1;     // whose parameters are exchanged or updated (Program::units)
  std::int64_t element = -1;  // of an update: where its first element is among all of the model's
  // Of kAttention and kAttentionGrad: so many sequences are in the rows.
  std::int64_t sequences = 1;
  // Of kRead, kAttention, kAttentionGrad: the last operand says of each token which one of its
  // sequence, counted from 0, is the first of its document. Queries see no keys before that.
  bool documents = false;
  // Of kEmbed, kEmbedGrad, kLossTerms, kLoss: the token that the first row of the table, or the
  // first column of the logits, stands for; tokens that others have are left out.
  std::int64_t first_token = 0;
  std::int64_t most_rows = 0;  // kSortRows: of an expert; slots beyond that are dropped
  bool adds_losses = false;    // kRouteGrad: with the gradients of the router's own losses
  // Of kGroupedMatmul, and a kQuantise for it: an expert's rows are so many pieces, each with a
  // first row, one of each rank that its rows came from. Rows are multiplied piece by piece, as on
  // the rank that sent them, so that they have the same bits; gradients of weights are one product
  // for each expert.
  std::int64_t pieces = 1;
  double flops = 0;  // of matrix products and attention; the rest is paid in bytes

  [[nodiscard]] bool is_exchange() const { return axis != Axis::kNone; }
  // Of an exchange: elements of the whole, of which every rank along the axis has a part. Of
  // kExchangeRows, whose other end depends on the tokens: those of this rank's own tokens.
  [[nodiscard]] std::int64_t exchanged_elements() const;
  [[nodiscard]] bool adds_to(std::size_t output) const { return ((adds >> output) & 1U) != 0; }
};

// "backward layer 3 micro 0 matmul gate_up 2048x768x128 …": the line of a list, without memory
// places: what is computed, from and into how much.
struct Program;
std::string to_text(const Op& op, const Program& program);

}  // namespace assay::step
