// Shapes: how wide a model's blocks and head are on one rank of tensor parallelism. The one place
// that the step (block.cc, head.cc, parameter.cc) and the planner take them from.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace assay::step {

// Columns of a block's activations. A weight is as wide as what it reads and as high as what it
// makes: q|k|v is qkv() x dim, the product after attention dim x q, gate|up inner x dim, down
// dim x ffn.
struct BlockShape {
  std::int64_t dim = 0;  // of the residual stream: never cut
  std::int64_t q = 0;
  std::int64_t kv = 0;     // of keys, and of values
  std::int64_t inner = 0;  // gate|up, or up alone
  std::int64_t ffn = 0;    // after the activation
  // The same of an expert, and of the expert that every token uses.
  std::int64_t expert_inner = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_inner = 0;
  std::int64_t shared_ffn = 0;

  [[nodiscard]] std::int64_t qkv() const { return q + 2 * kv; }
};

// Heads and the MLP's width are spread over `tensor` ranks, which spec's rules make come out even.
// With fewer key heads than ranks, ranks keep copies of one.
BlockShape block_shape(const spec::ModelSpec& model, std::int64_t tensor = 1);

// Of a mixture: rows that experts compute of so many tokens, together and each at most. Every one
// may be chosen by all of them; with a capacity, the rest is dropped.
std::int64_t rows_of_experts(const spec::ModelSpec& model, std::int64_t tokens);
std::int64_t most_rows_of_expert(const spec::ModelSpec& model, std::int64_t tokens);

// Rows of the embedding and the head are rounded up to a multiple of this: a vocabulary of an odd
// size makes products with it many times slower.
inline constexpr std::int64_t kRoundRows = 64;
std::int64_t padded_rows(std::int64_t rows);
// Of one tensor-parallel rank's part of a table of `rows`, padding included.
std::int64_t rows_of_table(std::int64_t rows, std::int64_t tensor);

// Logits that exist at a time, at most: elements.
inline constexpr std::int64_t kMostLogits = std::int64_t{1} << 29U;

// How many of `tokens`, with `vocab` logits each, have logits at a time: equal parts, so that no
// small one is left over.
std::int64_t head_rows(std::int64_t tokens, std::int64_t vocab);

}  // namespace assay::step
