// Shapes: the widths of a model's blocks and head on one tensor-parallel rank. The step (block.cc,
// head.cc, parameter.cc) and what the planner counts exactly (plan/exchange) have them from here.
// Closed forms divide widths themselves, as real numbers (plan/work_of_job.cc: the same rule for
// key heads); spec/parameters.h has those of the whole model.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace assay::step {

// Columns of a block's activations. A weight has as many columns as its input and as many rows as
// its output: q|k|v is qkv() x dim, the output projection of attention dim x q, gate|up inner x
// dim, down dim x ffn.
struct BlockShape {
  std::int64_t dim = 0;  // of the residual stream: never divided
  std::int64_t q = 0;
  std::int64_t kv = 0;     // of keys; also of values
  std::int64_t inner = 0;  // gate|up, or up alone
  std::int64_t ffn = 0;    // after the activation
  // The same for an expert, and for the shared expert that every token uses.
  std::int64_t expert_inner = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_inner = 0;
  std::int64_t shared_ffn = 0;

  [[nodiscard]] std::int64_t qkv() const { return q + 2 * kv; }
};

// Heads and the MLP's width are divided among `tensor` ranks; spec's rules make sure that they
// divide evenly. With fewer key heads than ranks, several ranks have a copy of one.
BlockShape block_shape(const spec::ModelSpec& model, std::int64_t tensor = 1);

// For mixtures: the rows that experts compute for this many tokens, all together, and the maximum
// for one. All tokens may choose the same expert; with a capacity, the excess is dropped.
std::int64_t rows_of_experts(const spec::ModelSpec& model, std::int64_t tokens);
std::int64_t most_rows_of_expert(const spec::ModelSpec& model, std::int64_t tokens);
// The maximum for a rank that has one of `ranks` equal parts of the experts and gets rows from all
// these ranks, each with `tokens` tokens: every token of every rank may choose experts of this one.
std::int64_t most_rows_of_rank(const spec::ModelSpec& model, std::int64_t tokens,
                               std::int64_t ranks);

// The rows of embedding and head are rounded up to a multiple of this: with an odd vocabulary size,
// their products would be many times slower.
inline constexpr std::int64_t kRoundRows = 64;
std::int64_t padded_rows(std::int64_t rows);
// Rows of one tensor-parallel rank's part of a table of `rows`, including padding.
std::int64_t rows_of_table(std::int64_t rows, std::int64_t tensor);

// The most logits, in elements, that exist at once.
inline constexpr std::int64_t kMostLogits = std::int64_t{1} << 29U;

// How many of `tokens` have their logits, `vocab` each, at once: equal parts, so that there is no
// small remainder.
std::int64_t head_rows(std::int64_t tokens, std::int64_t vocab);

}  // namespace assay::step
