#include "step/shapes.h"

#include <algorithm>
#include <cmath>

namespace assay::step {
namespace {

constexpr std::int64_t kRowStep = 128;

}  // namespace

BlockShape block_shape(const spec::ModelSpec& m, std::int64_t tensor) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, m.kv_heads / tensor);
  return {.dim = m.dim,
          .q = m.q_dim() / tensor,
          .kv = kv_heads * m.head_dim,
          .inner = m.inner_dim() / tensor,
          .ffn = m.ffn / tensor,
          .expert_inner = m.inner_of(m.expert_width()) / tensor,
          .expert_ffn = m.expert_width() / tensor,
          .shared_inner = m.inner_of(m.shared_ffn) / tensor,
          .shared_ffn = m.shared_ffn / tensor};
}

std::int64_t most_rows_of_expert(const spec::ModelSpec& m, std::int64_t tokens) {
  if (m.capacity == 0) return tokens;
  const double even =
      static_cast<double>(tokens * m.experts_per_token) / static_cast<double>(m.experts);
  return std::min(tokens, static_cast<std::int64_t>(std::ceil(m.capacity * even)));
}

std::int64_t rows_of_experts(const spec::ModelSpec& m, std::int64_t tokens) {
  return std::min(tokens * m.experts_per_token, m.experts * most_rows_of_expert(m, tokens));
}

std::int64_t most_rows_of_rank(const spec::ModelSpec& m, std::int64_t tokens, std::int64_t ranks) {
  const std::int64_t own = m.experts / ranks;
  return ranks * std::min(tokens * std::min(m.experts_per_token, own),
                          own * most_rows_of_expert(m, tokens));
}

std::int64_t padded_rows(std::int64_t rows) {
  return (rows + kRoundRows - 1) / kRoundRows * kRoundRows;
}

std::int64_t rows_of_table(std::int64_t rows, std::int64_t tensor) {
  return padded_rows((rows + tensor - 1) / tensor);
}

std::int64_t head_rows(std::int64_t tokens, std::int64_t vocab) {
  const std::int64_t rows = std::max(kRowStep, kMostLogits / vocab / kRowStep * kRowStep);
  const std::int64_t parts = (tokens + rows - 1) / rows;
  const std::int64_t even = (tokens + parts - 1) / parts;
  return std::min(tokens, (even + kRowStep - 1) / kRowStep * kRowStep);
}

}  // namespace assay::step
