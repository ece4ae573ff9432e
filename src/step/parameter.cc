#include "step/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "step/shapes.h"

namespace assay::step {
namespace {

// How tensor-parallel ranks divide a parameter.
enum class Cut : std::uint8_t { kNothing, kRows, kColumns };

class ParameterList {
 public:
  ParameterList(const spec::ModelSpec& model, spec::Optimizer optimizer, const Layout& layout)
      : model_(model),
        muon_(optimizer == spec::Optimizer::kMuon),
        tensor_(layout.tensor),
        expert_(layout.expert),
        sequence_parallel_(layout.sequence_parallel) {}

  void fill(std::span<const std::int32_t> layers);
  std::vector<Parameter> list;

 private:
  static std::string named(std::int32_t layer, const char* name) {
    return layer == kNoLayer ? std::string(name) : fmt::format("layers.{}.{}", layer, name);
  }
  // This rank's share of `count`, which divides evenly.
  [[nodiscard]] Range share(std::int64_t first, std::int64_t count) const {
    const std::int64_t each = count / tensor_.ranks;
    return {first + tensor_.rank * each, each};
  }
  // For rows that consist of several stacked matrices: a share of each.
  [[nodiscard]] std::vector<Range> shares(const std::vector<std::int64_t>& heights) const {
    std::vector<Range> ranges;
    std::int64_t first = 0;
    for (const std::int64_t height : heights) {
      ranges.push_back(share(first, height));
      first += height;
    }
    return ranges;
  }

  void matrix(const char* name, ModelPart part, std::int32_t layer,
              const std::vector<std::int64_t>& heights, std::int64_t cols, Cut cut,
              double std_of = kInitStd) {
    add_matrix(name, part, layer, slice_of(heights, cols, cut), 0, std_of);
  }
  // A mixture's experts are stacked vertically, with equal heights.
  void experts(const char* name, ModelPart part, std::int32_t layer,
               const std::vector<std::int64_t>& heights, std::int64_t cols, Cut cut,
               double std_of = kInitStd) {
    Slice slice = slice_of(heights, cols, cut);
    const std::int64_t each = slice.whole_rows / expert_.ranks;
    const Range own{expert_.rank * each, each};
    for (Range& range : slice.rows) range = range.common(own);
    std::erase_if(slice.rows, [](const Range& range) { return range.count == 0; });
    add_matrix(name, part, layer, std::move(slice), 0, std_of);
    list.back().of_experts = true;
  }
  [[nodiscard]] Slice slice_of(const std::vector<std::int64_t>& heights, std::int64_t cols,
                               Cut cut) const {
    Slice slice{.whole_rows = std::accumulate(heights.begin(), heights.end(), std::int64_t{0}),
                .whole_cols = cols};
    slice.cut = cut != Cut::kNothing;
    slice.cols = cut == Cut::kColumns ? share(0, cols) : Range{0, cols};
    slice.rows = cut == Cut::kRows && tensor_.ranks > 1 ? shares(heights)
                                                        : std::vector<Range>{{0, slice.whole_rows}};
    return slice;
  }
  // One row per token; each rank's share is padded separately.
  void table(const char* name, ModelPart part) {
    const std::int64_t each = rows_of_table(model_.vocab, tensor_.ranks);
    const Range all{0, model_.vocab};
    Slice slice{.whole_rows = model_.vocab, .whole_cols = model_.dim, .cols = {0, model_.dim}};
    slice.rows = {all.common({tensor_.rank * each, each})};
    slice.cut = true;
    const std::int64_t padding = each - slice.rows[0].count;
    add_matrix(name, part, kNoLayer, std::move(slice), padding, kInitStd);
  }
  void add_matrix(const char* name, ModelPart part, std::int32_t layer, Slice slice,
                  std::int64_t padding, double std_of) {
    const bool in_block = layer != kNoLayer;
    std::int64_t rows = 0;
    for (const Range& range : slice.rows) rows += range.count;
    const std::int64_t cols = slice.cols.count;
    list.push_back({.name = named(layer, name),
                    .part = part,
                    .layer = layer,
                    .rule = muon_ && in_block ? UpdateRule::kMuon : UpdateRule::kDecayed,
                    .rows = rows,
                    .cols = cols,
                    .padding_rows = padding,
                    .slice = std::move(slice),
                    .init_std = std_of});
  }
  // `widths`: of concatenated vectors.
  void vector(const char* name, ModelPart part, std::int32_t layer,
              std::vector<std::int64_t> widths, Init init, Cut cut = Cut::kNothing) {
    const std::int64_t size = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
    // As a column, so that its elements are divided like the rows of the matrix that they belong
    // to.
    Slice slice{.whole_rows = size, .whole_cols = 1, .rows = {{0, size}}, .cols = {0, 1}};
    slice.cut = cut != Cut::kNothing;
    if (slice.cut && tensor_.ranks > 1) slice.rows = shares(widths);
    std::int64_t own = 0;
    for (const Range& range : slice.rows) own += range.count;
    const bool of_heads = part == ModelPart::kQueryNorm || part == ModelPart::kKeyNorm;
    const bool partial =
        tensor_.ranks > 1 && cut == Cut::kNothing && (sequence_parallel_ || of_heads);
    list.push_back({.name = named(layer, name),
                    .part = part,
                    .layer = layer,
                    .rule = UpdateRule::kUndecayed,
                    .cols = own,
                    .slice = std::move(slice),
                    .partial_gradient = partial,
                    .init = init});
  }
  void norm(const char* name, const char* bias, ModelPart part, std::int32_t layer) {
    if (model_.norm == spec::Norm::kRmsNormPlain) return;
    vector(name, part, layer, {model_.dim}, Init::kOnes);
    if (model_.norm == spec::Norm::kLayerNorm) {
      vector(bias, part, layer, {model_.dim}, Init::kZeros);
    }
  }
  void bias(const char* name, ModelPart part, std::int32_t layer, std::vector<std::int64_t> widths,
            Cut cut) {
    const bool exists = part == ModelPart::kQkv ? model_.has_qkv_bias() : model_.bias;
    if (exists) vector(name, part, layer, std::move(widths), Init::kZeros, cut);
  }
  void block(std::int32_t layer);
  void mixture(std::int32_t layer, double out_std);

  const spec::ModelSpec& model_;
  bool muon_;
  AxisPosition tensor_;
  AxisPosition expert_;
  bool sequence_parallel_;
};

void ParameterList::block(std::int32_t layer) {
  const spec::ModelSpec& m = model_;
  // Weights whose results are added to the residual stream, 2 L times, start smaller, so that the
  // stream does not grow with depth.
  const double out_std = kInitStd / std::sqrt(2.0 * static_cast<double>(m.layers));
  const BlockShape s = block_shape(m);
  const std::vector<std::int64_t> qkv = {s.q, s.kv, s.kv};
  const std::vector<std::int64_t> gate_up =
      s.inner == s.ffn ? std::vector{s.ffn} : std::vector{s.ffn, s.ffn};
  norm("attention_norm", "attention_norm_bias", ModelPart::kAttentionNorm, layer);
  matrix("qkv", ModelPart::kQkv, layer, qkv, s.dim, Cut::kRows);
  bias("qkv_bias", ModelPart::kQkv, layer, qkv, Cut::kRows);
  if (m.qk_norm == spec::QkNorm::kLearned) {
    vector("query_norm", ModelPart::kQueryNorm, layer, {m.head_dim}, Init::kOnes);
    vector("key_norm", ModelPart::kKeyNorm, layer, {m.head_dim}, Init::kOnes);
  }
  matrix("attention_out", ModelPart::kAttentionOut, layer, {s.dim}, s.q, Cut::kColumns, out_std);
  bias("attention_out_bias", ModelPart::kAttentionOut, layer, {s.dim}, Cut::kNothing);
  norm("mlp_norm", "mlp_norm_bias", ModelPart::kMlpNorm, layer);
  if (m.is_moe_layer(layer)) return mixture(layer, out_std);
  matrix("gate_up", ModelPart::kGateUp, layer, gate_up, s.dim, Cut::kRows);
  bias("gate_up_bias", ModelPart::kGateUp, layer, gate_up, Cut::kRows);
  matrix("down", ModelPart::kDown, layer, {s.dim}, s.ffn, Cut::kColumns, out_std);
  bias("down_bias", ModelPart::kDown, layer, {s.dim}, Cut::kNothing);
}

// Experts are stacked vertically. The router is small: every tensor-parallel rank has all of it.
void ParameterList::mixture(std::int32_t layer, double out_std) {
  const spec::ModelSpec& m = model_;
  const auto gate_up = [&](std::int64_t width, std::int64_t experts) {
    return std::vector(static_cast<std::size_t>(experts * m.inner_of(width) / width), width);
  };
  matrix("router", ModelPart::kRouter, layer, {m.experts}, m.dim, Cut::kNothing);
  if (tensor_.ranks > 1) list.back().partial_gradient = true;
  if (m.router == spec::Router::kSigmoid) {
    vector("router_bias", ModelPart::kRouter, layer, {m.experts}, Init::kZeros);
    list.back().rule = UpdateRule::kBalanced;
    if (tensor_.ranks > 1) list.back().partial_gradient = true;
  }
  experts("expert_gate_up", ModelPart::kGateUp, layer, gate_up(m.expert_width(), m.experts), m.dim,
          Cut::kRows);
  experts("expert_down", ModelPart::kDown, layer, {m.experts * m.dim}, m.expert_width(),
          Cut::kColumns, out_std);
  if (m.shared_ffn == 0) return;
  matrix("shared_gate_up", ModelPart::kSharedGateUp, layer, gate_up(m.shared_ffn, 1), m.dim,
         Cut::kRows);
  matrix("shared_down", ModelPart::kSharedDown, layer, {m.dim}, m.shared_ffn, Cut::kColumns,
         out_std);
}

void ParameterList::fill(std::span<const std::int32_t> layers) {
  const spec::ModelSpec& m = model_;
  table("embedding", ModelPart::kEmbedding);
  if (m.positions == spec::Positions::kLearned) {
    matrix("positions", ModelPart::kPositions, kNoLayer, {m.context}, m.dim, Cut::kNothing);
  }
  for (const std::int32_t layer : layers) block(layer);
  norm("final_norm", "final_norm_bias", ModelPart::kFinalNorm, kNoLayer);
  if (!m.tied) table("head", ModelPart::kHead);
}

}  // namespace

std::vector<Slice::Runs> Slice::runs_of(const Range& elements) const {
  std::vector<Runs> list;
  const auto add = [&](std::int64_t first, std::int64_t count, std::int64_t run) {
    if (count > 0) list.push_back({first, count, run, whole_cols});
  };
  std::int64_t before = 0;  // elements of earlier ranges of rows
  for (const Range& range : rows) {
    const Range here = elements.common({before, range.count * cols.count});
    const std::int64_t from = here.first - before;
    const std::int64_t to = from + here.count;
    before += range.count * cols.count;
    if (here.count == 0) continue;
    if (cols.count == whole_cols) {  // rows are contiguous
      add(range.first * whole_cols + from, here.count, here.count);
      continue;
    }
    const auto at = [&](std::int64_t element) {
      return (range.first + element / cols.count) * whole_cols + cols.first + element % cols.count;
    };
    // The end of a row, whole rows, the beginning of a row.
    const std::int64_t whole_from = std::min(to, (from + cols.count - 1) / cols.count * cols.count);
    const std::int64_t whole_to = std::max(whole_from, to / cols.count * cols.count);
    add(at(from), whole_from - from, whole_from - from);
    add(at(whole_from), whole_to - whole_from, cols.count);
    add(at(whole_to), to - whole_to, to - whole_to);
  }
  return list;
}

std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout) {
  std::vector<std::int32_t> layers(static_cast<std::size_t>(model.layers));
  std::iota(layers.begin(), layers.end(), 0);
  return list_parameters(model, optimizer, layout, layers);
}

std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout, std::span<const std::int32_t> layers) {
  ParameterList parameters(model, optimizer, layout);
  parameters.fill(layers);
  return std::move(parameters.list);
}

}  // namespace assay::step
