// The kernels of every op, in fp32. Sums are made over fixed blocks in a fixed order, so that
// results do not depend on the number of threads or their timing.
#pragma once

#include <cstdint>
#include <span>

#include "spec/model.h"
#include "step/context.h"
#include "train/backend.h"
#include "train/executed.h"
#include "train/threads.h"

namespace assay::train::cpu {

// A view resolved to an address.
struct Matrix {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t i) const { return data + i * stride; }
  [[nodiscard]] bool empty() const { return data == nullptr; }
};

struct Integers {
  std::int32_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] std::int32_t* row(std::int64_t i) const { return data + i * cols; }
  [[nodiscard]] bool empty() const { return data == nullptr; }
};

// Passed to every kernel: threads, and the log of executed ops.
class Device : public Threads, public OpRecorder {
 public:
  using Threads::Threads;
};

// embedding.cc
// The table starts with the row of `first_token`. Tokens outside the table (they are on another
// tensor-parallel rank) get zeros and contribute no gradient.
void embed(Device& device, Tokens tokens, std::int64_t first_token, Matrix table, Matrix positions,
           const step::SequencePart& part, Matrix x);
void embed_grad(Device& device, Tokens tokens, std::int64_t first_token, Matrix dx, Matrix dtable,
                bool adds);
void positions_grad(Device& device, Matrix dx, const step::SequencePart& part, Matrix dpositions,
                    bool adds);

// norm.cc: weight and bias may be empty. Each group of `width` elements is normalised separately: x
// may hold several per row, side by side (heads).
struct NormShape {
  step::OpKind kind = step::OpKind::kNorm;  // recorded in the log
  bool centred = false;                     // LayerNorm
  std::int64_t width = 0;
  double epsilon = 0;
};
void norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix bias, Matrix h);
// dx may be dh. Adds the residual or, with adds_dx, the previous contents of dx.
void norm_grad(Device& device, NormShape shape, Matrix dh, Matrix x, Matrix weight, Matrix residual,
               Matrix dx, bool adds_dx, Matrix dweight, Matrix dbias, bool adds_weights);

// matmul.cc: c = op(a) op(b) + residual + bias, or c += that.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds = false;
};
void matmul(Device& device, Product product, Matrix a, Matrix b, Matrix residual, Matrix bias,
            Matrix c);
// The same without a log entry, for kernels that are composed of products.
void multiply_rows(Device& device, Product product, Matrix a, Matrix b, Matrix residual,
                   Matrix bias, Matrix c);
void bias_grad(Device& device, Matrix dy, Matrix dbias, bool adds);

// attention.cc: rotary position embedding of heads stored side by side; direction -1 is the
// inverse.
struct Rotation {
  step::SequencePart part;
  std::span<const double> frequencies;  // radians per position, for each pair of elements of a head
};
void rotate(Device& device, const Rotation& rotation, int direction, Matrix heads);

// Causal, with key and value heads shared evenly by the query heads. There may be
// more keys than queries; the last query of a sequence sees all of its keys. `documents` is empty,
// or holds for each query the first key of its sequence that it sees, which never decreases from
// one query to the next.
struct AttentionShape {
  std::int64_t queries = 0;  // per sequence
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};
void attention(Device& device, AttentionShape shape, Matrix q, Matrix k, Matrix v, Tokens documents,
               Matrix o, Matrix log_sum_exp);
struct AttentionGrads {
  Matrix dq;
  Matrix dk;
  Matrix dv;
};
void attention_grad(Device& device, AttentionShape shape, Matrix q, Matrix k, Matrix v, Matrix o,
                    Matrix log_sum_exp, Matrix d_o, Tokens documents, AttentionGrads grads);

// context.cc: keys and values of ranks that share sequences (step/context.h). `sequences` is the
// number of sequences in a micro-batch.
void pack_keys(Device& device, Matrix k, Matrix v, Matrix packed);
void order_keys(Device& device, std::int64_t sequences, std::int64_t piece, Matrix by_rank,
                Matrix in_order);
void split_keys_grad(Device& device, std::int64_t sequences, std::int64_t piece, Matrix first,
                     Matrix second, Matrix by_rank);
void sum_keys_grad(Device& device, Matrix addends, Matrix sum);

// activation.cc: inner is gate|up for SwiGLU. In the gradient, `a` may be empty or da itself.
// In a mixture of experts each row is multiplied by the router's weight of its slot.
struct RowWeights {
  Matrix weights;
  Integers slots;

  [[nodiscard]] bool empty() const { return weights.empty(); }
  // Row i's element of a matrix that has one element per slot.
  [[nodiscard]] float& of_row(const Matrix& of_slots, std::int64_t i) const {
    return of_slots.data[slots.data[i]];
  }
};
void activate(Device& device, spec::Mlp kind, Matrix inner, RowWeights by, Matrix a);
void activate_grad(Device& device, spec::Mlp kind, Matrix inner, Matrix da, RowWeights by,
                   Matrix dinner, Matrix dweights, Matrix a);

// mixture.cc. `sums`, `loads`, `bias` and `dbias` may be empty.
struct Routing {
  spec::Router router = spec::Router::kSoftmax;
  bool normalise = true;
  double scale = 1;
  std::int64_t most_rows = 0;  // capacity of an expert
  double step_tokens = 0;      // over all ranks
};
void route(Device& device, const Routing& routing, Matrix logits, Matrix bias, Matrix weights,
           Integers experts, Matrix counts, Matrix sums, bool adds_sums, Matrix loads,
           bool adds_loads);
void route_grad(Device& device, const Routing& routing, const StepSettings& settings,
                bool adds_losses, Matrix logits, Matrix weights, Integers experts, Integers rows,
                Matrix counts, Matrix dweights, Matrix dlogits, Matrix dbias);
void sort_rows(Device& device, std::int64_t most_rows, Integers experts, Integers rows,
               Integers slots, Integers first_rows, Integers counts);
void arrange_rows(Device& device, Integers sent, Integers received, Integers first_rows,
                  Integers sources, Integers places);
void permute_rows(Device& device, Matrix x, Integers index, Matrix rows);
void gather_rows(Device& device, std::int64_t per_token, Matrix x, Integers slots, Matrix rows);
void combine_rows(Device& device, Matrix x, Integers rows, Matrix residual, Matrix sums);
void grouped_matmul(Device& device, Product product, std::int64_t pieces, Matrix a, Matrix b,
                    Integers first_rows, Matrix c);
void balance(Device& device, const StepSettings& settings, Matrix scalars, Matrix load,
             Matrix bias);

// loss.cc: replaces logits by their gradients if `gradient`; writes or adds to the sums. The first
// `columns` logits belong to the tokens from `first_token` on, the rest is padding. `terms` holds
// the loss terms of every tensor-parallel rank in turn; it is empty if this rank has all logits.
struct Vocabulary {
  std::int64_t first_token = 0;
  std::int64_t columns = 0;
};
void loss(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms,
          const StepSettings& settings, bool gradient, Matrix sums, bool adds);
void loss_terms(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms);

// sums.cc
// The sum of the rows of `addends`, each as long as `sum`, plus residual and bias if
// present. `residual` may be `sum`.
void sum(Device& device, Matrix addends, Matrix residual, Matrix bias, Matrix sum);

// Adds the rows of `addends` one after the other to `sum` or, unless `adds`, to zero.
void fold(Device& device, Matrix addends, Matrix sum, bool adds);
// Sums of squares of each gradient, per block.
void norm_sums(Device& device, std::int64_t block, std::span<const Matrix> gradients,
               std::span<const Matrix> sums);
void step_sums(Device& device, Matrix by_rank, Matrix sums);

// optimizer.cc
void gradient_norm(Device& device, std::span<const Matrix> sums, double clip, Matrix scalars);
void adamw(Device& device, const StepSettings& settings, bool decays, Matrix scalars,
           Matrix gradient, Matrix weight, Matrix first, Matrix second);
void muon(Device& device, const StepSettings& settings, Matrix scalars, Matrix gradient,
          Matrix weight, Matrix momentum);

}  // namespace assay::train::cpu
