#include "train/cuda/workspace.h"

#include <algorithm>
#include <set>

#include "train/cuda/batches.h"
#include "train/cuda/grouped_products.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kProductsBytes = std::int64_t{64} << 20U;
constexpr std::int64_t kAlignment = 256;  // bytes

// The widest row of partial sums of any op.
std::int64_t partial_elements(const step::Program& p) {
  const spec::ModelSpec& m = p.model;
  const std::int64_t widest = std::max({m.qkv_dim(), m.inner_dim(), m.dim});
  return std::max({2 * kNormBlocks * m.dim, kNormBlocks * m.head_dim, kBiasBlocks * widest});
}

// For the blocks of a router, for sorting its slots, and for rows that arrive.
std::int64_t routing_bytes(const step::Program& p) {
  const spec::ModelSpec& m = p.model;
  if (!m.is_moe()) return 0;
  const std::int64_t sums = kRouteBlocks * ((m.experts + 1) * 8 + m.experts * 4);
  const std::int64_t segments = 2 * (kMostExperts + 1) * 4;  // of received rows, by rank and expert
  return std::max(
      {sums, segments, m.experts * sort_blocks(p.micro_tokens() * m.experts_per_token) * 4});
}

// Micro-batches whose tokens are on the device at the same time.
std::int64_t token_places(const step::Program& p) {
  std::set<step::BufferId> places;
  for (const step::Op& op : p.ops) {
    const bool reads_tokens =
        op.kind == step::OpKind::kRead && op.part == step::ModelPart::kEmbedding;
    if (reads_tokens) places.insert(op.out[0].buffer);
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(places.size()));
}

std::int64_t document_bias_bytes(const step::Program& p) {
  if (!p.choices.document_mask) return 0;
  return p.micro_tokens() * document_bias_stride(p.choices.sequence) * 2;
}

// Sums of squares of all gradients.
std::int64_t norm_sums_of(const step::Program& p) {
  std::int64_t count = 0;
  for (const step::Unit& unit : p.model_units) {
    const std::int64_t ranks = unit.experts ? p.choices.layout.expert.ranks : 1;
    count += ranks * unit.used / step::norm_block(p.model);
  }
  return count * p.choices.layout.tensor.ranks;
}

template <class Measure>
std::int64_t largest_of(const step::Program& p, Measure measure) {
  std::int64_t largest = 0;
  for (const step::Parameter& parameter : p.parameters) {
    if (parameter.rule == step::UpdateRule::kMuon) largest = std::max(largest, measure(parameter));
  }
  return largest;
}

}  // namespace

std::int64_t largest_matrix(const step::Program& p) {
  return largest_of(p, [](const step::Parameter& m) { return m.elements(); });
}

std::int64_t largest_square(const step::Program& p) {
  return largest_of(p, [](const step::Parameter& m) {
    return std::min(m.rows, m.cols) * std::min(m.rows, m.cols);
  });
}

WorkspaceLayout lay_out_workspace(const step::Program& p, std::int64_t attention_bytes,
                                  std::byte* begin) {
  WorkspaceLayout layout;
  const auto take = [&](std::int64_t bytes) -> void* {
    std::byte* at = begin == nullptr ? nullptr : begin + layout.bytes;
    layout.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  Workspace& w = layout.workspace;
  w.products_bytes = kProductsBytes;
  w.products = take(kProductsBytes);
  w.attention = take(attention_bytes);
  w.document_bias = take(document_bias_bytes(p));
  w.partial = static_cast<float*>(take(partial_elements(p) * 4));
  w.sums = static_cast<double*>(take((kSums + 2 * p.micro_tokens()) * 8));
  w.norm_sums = static_cast<float*>(take(norm_sums_of(p) * 4));
  w.rotation_table = static_cast<float*>(take(p.choices.sequence * p.model.head_dim * 4));
  w.token_index =
      static_cast<std::int32_t*>(take(token_places(p) * Batches::index_size(p.micro_tokens()) * 4));
  w.routing = take(routing_bytes(p));
  w.lanes = take(p.model.is_moe() ? (kLanes - 1) * kProductsBytes : 0);
  w.orthogonal = take(2 * (2 * largest_matrix(p) + 2 * largest_square(p)));
  return layout;
}

}  // namespace assay::train::cuda
