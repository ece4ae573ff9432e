// Assay's own kernels, one function per op. All are memory-bound: each reads its operands once, 16
// bytes at a time, and computes in fp32. Sums over rows are made in two stages of a fixed shape, so
// that results do not depend on the order in which blocks finish.
#pragma once

#include <cstdint>
#include <span>

#include "spec/model.h"
#include "step/context.h"
#include "train/cuda/batches.h"
#include "train/cuda/device.h"
#include "train/cuda/matrix.h"
#include "train/step_settings.h"

namespace assay::train::cuda {

// The longest row: it is held in the registers of one block.
inline constexpr std::int64_t kWidestRow = 16384;
// Rows and heads are aligned to this many elements: 16 bytes.
inline constexpr std::int64_t kVector = 8;

// Number of blocks in the first stage of a sum.
inline constexpr int kNormBlocks = 528;     // each with a row of dweight and one of dbias
inline constexpr int kBiasBlocks = 64;      // each with a row of dbias
inline constexpr int kSquareBlocks = 1056;  // each with one double per parameter group
inline constexpr int kSums = 4 * kSquareBlocks;
inline constexpr int kRouteBlocks = 264;  // each with sums and counts of experts
inline constexpr int kRouteThreads = 256;

// Mixtures: the most experts among which one warp can choose.
inline constexpr std::int64_t kMostExperts = 512;
// Slots sorted by one block.
inline constexpr int kSortSlots = 1024;

struct NormShape {
  bool centred = false;    // LayerNorm
  std::int64_t width = 0;  // elements normalised together: a row, or a head
  float epsilon = 0;
};
// norm.cu, norm_grad.cu: weight and bias may be empty. dx may be dh. Adds the residual or, with
// adds_dx, the previous contents of dx.
void norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix bias, Matrix h);
void norm_grad(Device& device, NormShape shape, Matrix dh, Matrix x, Matrix weight, Matrix residual,
               Matrix dx, bool adds_dx, Matrix dweight, Matrix dbias, bool adds_weights);

// document_bias.cu: the bias that attention adds to scores so that queries do not see keys before
// their document: one row per query, one element per key of its sequence.
void document_bias(Device& device, Tokens documents, Matrix bias);

// head_norm.cu: normalises each head of a row separately.
void head_norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix y);
void head_norm_grad(Device& device, NormShape shape, Matrix dy, Matrix x, Matrix weight, Matrix dx,
                    Matrix dweight, bool adds_weight);

// quantise.cu: `scale` is the smallest power of two that no element of x exceeds; elements are
// divided by it and multiplied by kFp8Range. `q` or its transpose `q_t` may be empty. With experts,
// only rows in use are scaled, and in `q_t` each expert's columns are padded with zeros.
inline constexpr float kFp8Range = 256;  // E4M3's maximum is 448, but scales are powers of two
struct RowsOfExperts {
  Matrix first_rows;  // empty: there are no experts
  std::int64_t pieces = 1;
};
void scale(Device& device, Matrix x, Matrix first_rows, Matrix scale);
void quantise(Device& device, Matrix x, Matrix scale, const RowsOfExperts& by, Matrix q,
              Matrix q_t);

// sums.cu
void bias_grad(Device& device, Matrix dy, Matrix dbias, bool adds);
// out[i] (+)= the sum over `count` rows of `partial`, `out.cols` wide.
void sum_partial(Device& device, const float* partial, int count, Matrix out, bool adds);
// The sum of the rows of `addends`, each as long as `sum`, plus residual and bias if present;
// rounded once.
void sum(Device& device, Matrix addends, Matrix residual, Matrix bias, Matrix sum);

// rotate.cu: rotary position embedding of heads stored side by side; direction -1 is the inverse.
// make_rotation_table() computes the table of cosines and sines once, in the workspace.
struct Rotation {
  std::int64_t sequence = 0;  // positions in the table
  std::int64_t head_dim = 0;
  step::SequencePart part;  // the part of the sequence that the rows are
};
// `frequencies`: radians per position, for each pair of elements of a head (spec/model.h).
void make_rotation_table(Device& device, const Rotation& rotation,
                         std::span<const double> frequencies);
void rotate(Device& device, const Rotation& rotation, int direction, Matrix heads);

// context.cu: keys and values of ranks that share sequences (step/context.h). `sequences` is the
// number of sequences in a micro-batch.
void pack_keys(Device& device, Matrix k, Matrix v, Matrix packed);
void order_keys(Device& device, std::int64_t sequences, std::int64_t piece, Matrix by_rank,
                Matrix in_order);
void split_keys_grad(Device& device, std::int64_t sequences, std::int64_t piece, Matrix first,
                     Matrix second, Matrix by_rank);
void sum_keys_grad(Device& device, Matrix addends, Matrix sum);

// activation.cu: inner is gate|up for SwiGLU. In the gradient, `a` may be empty or da itself, and
// dinner is inner itself.
// In a mixture of experts each row is multiplied by the router's weight (fp32) of its slot; rows
// without a slot are zero and get no gradient.
struct RowWeights {
  Matrix weights;
  Matrix slots;

  [[nodiscard]] bool empty() const { return weights.empty(); }
};
void activate(Device& device, spec::Mlp kind, Matrix inner, RowWeights by, Matrix a);
void activate_grad(Device& device, spec::Mlp kind, Matrix inner, Matrix da, RowWeights by,
                   Matrix dinner, Matrix dweights, Matrix a);

// Mixtures. Logits, router weights, their gradients, counts, sums and loads are fp32; experts, rows
// and slots are 32-bit integers, with contiguous rows; -1 means none.
struct Routing {
  spec::Router router = spec::Router::kSoftmax;
  bool normalise = true;
  double scale = 1;
  std::int64_t most_rows = 0;  // capacity of an expert
  double step_tokens = 0;      // over all ranks
};
// The coefficients of the router's own losses, if this rank adds their gradients.
struct RouterLosses {
  bool added = false;
  double balance = 0;
  double z = 0;
};
// route.cu: `bias`, `sums`, `loads` and `dbias` may be empty.
void route(Device& device, const Routing& routing, Matrix logits, Matrix bias, Matrix weights,
           Matrix experts, Matrix counts, Matrix sums, bool adds_sums, Matrix loads,
           bool adds_loads);
void route_grad(Device& device, const Routing& routing, const RouterLosses& losses, Matrix logits,
                Matrix weights, Matrix experts, Matrix rows, Matrix counts, Matrix dweights,
                Matrix dlogits, Matrix dbias);
// sort_rows.cu: `row_counts` (per expert) may be empty. `on_host`, in mapped host memory, also gets
// the first rows; may be null.
void sort_rows(Device& device, std::int64_t most_rows, Matrix experts, Matrix rows, Matrix slots,
               Matrix first_rows, Matrix row_counts, std::int32_t* on_host);
// arrange_rows.cu: row counts have one row per rank. Written to mapped host memory: the first row
// of each expert's pieces, and the totals sent to and received from each rank.
struct ArrangedOnHost {
  std::int32_t* first_rows = nullptr;
  std::int32_t* sent = nullptr;
  std::int32_t* received = nullptr;
};
void arrange_rows(Device& device, Matrix sent, Matrix received, Matrix first_rows, Matrix sources,
                  Matrix places, const ArrangedOnHost& on_host);
// Rows of bf16, with a multiple of kVector elements, or of fp32.
void permute_rows(Device& device, bool fp32, Matrix x, Matrix index, Matrix rows);
std::int64_t sort_blocks(std::int64_t slots);
// mixture.cu
void gather_rows(Device& device, std::int64_t per_token, Matrix x, Matrix slots, Matrix rows);
// `residual` may be empty, or `sums` itself.
void combine_rows(Device& device, Matrix x, Matrix rows, Matrix residual, Matrix sums);
void balance(Device& device, double rate, Matrix scalars, Matrix load, Matrix bias,
             Matrix remainder);

// embedding.cu
// The table starts with the row of `first_token`. Tokens outside the table (they are on another
// tensor-parallel rank) get zeros and contribute no gradient.
void embed(Device& device, Tokens tokens, std::int64_t first_token, Matrix table, Matrix positions,
           const step::SequencePart& part, Matrix x);
// `index`: the positions of each distinct token (batches.h), so that each row of the table is
// summed by one block, in batch order.
void embed_grad(Device& device, Tokens tokens, std::int64_t first_token, const TokenIndex& index,
                Matrix dx, Matrix dtable, bool adds);
void positions_grad(Device& device, Matrix dx, const step::SequencePart& part, Matrix dpositions,
                    bool adds);

// loss.cu: replaces logits by their gradients if `gradient`; writes or adds to the sums.
struct LossWeights {
  float of_token = 0;  // one over the step's counted targets
  float z_loss = 0;
};
// The first `columns` logits belong to the tokens from `first_token` on, the rest is padding.
struct Vocabulary {
  std::int64_t first_token = 0;
  std::int64_t columns = 0;
};
// `terms` holds the loss terms of every tensor-parallel rank in turn; it is empty if this rank has
// all logits.
void loss(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms,
          LossWeights weights, bool gradient, Matrix sums, bool adds);
void loss_terms(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms);

// optimizer.cu. Moments are rounded to bf16 stochastically: with rounding to nearest a second
// moment could never decrease, because one step changes it by less than half of bf16's last bit.
// The random bits are a hash of element and step (`rounding_seed`), so that a run can be repeated.
//
// Adds the rows of `addends` one after the other to `sum` or, unless `adds`, to zero.
void fold(Device& device, Matrix addends, Matrix sum, bool adds);
void fold_fp32(Device& device, Matrix addends, Matrix sum, bool adds);
// Sums of squares of each gradient, per block.
void norm_sums(Device& device, std::int64_t block, std::span<const Matrix> gradients,
               std::span<const Matrix> sums);
void gradient_norm(Device& device, std::span<const Matrix> sums, double clip, Matrix scalars);
void step_sums(Device& device, Matrix by_rank, Matrix sums);
// `element`: index of the first element among all elements of the model.
void adamw(Device& device, const AdamwNumbers& numbers, std::uint32_t rounding_seed,
           std::int64_t element, Matrix scalars, Matrix gradient, Matrix weight, Matrix remainder,
           Matrix first, Matrix second);

// muon_kernels.cu: the element-wise parts of Muon (muon.cc).
// Updates the momentum; `update` becomes the direction, scaled to norm one.
void muon_direction(Device& device, const MuonNumbers& numbers, std::uint32_t rounding_seed,
                    Matrix scalars, Matrix gradient, Matrix momentum, Matrix update);
void muon_move(Device& device, const MuonNumbers& numbers, Matrix scalars, Matrix update,
               Matrix weight, Matrix remainder);

// random.cu: operands for timing matrix products; zeros would give unrealistically short times.
void fill_random(Device& device, void* data, std::int64_t elements);
void fill_random_fp8(Device& device, void* data, std::int64_t elements);

}  // namespace assay::train::cuda
