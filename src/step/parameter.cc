#include "step/parameter.h"

#include <fmt/format.h>

#include <cmath>

#include "step/shapes.h"

namespace assay::step {
namespace {

constexpr double kInitStd = 0.02;

class ParameterList {
 public:
  ParameterList(const spec::ModelSpec& model, spec::Optimizer optimizer)
      : model_(model), muon_(optimizer == spec::Optimizer::kMuon) {}

  void fill();
  std::vector<Parameter> list;

 private:
  void add(Parameter parameter) { list.push_back(std::move(parameter)); }
  static std::string named(std::int32_t layer, const char* name) {
    return layer == kNoLayer ? std::string(name) : fmt::format("layers.{}.{}", layer, name);
  }
  void matrix(const char* name, Part part, std::int32_t layer, std::int64_t rows, std::int64_t cols,
              double std_of = kInitStd) {
    const bool in_block = layer != kNoLayer;
    add({.name = named(layer, name),
         .part = part,
         .layer = layer,
         .group = muon_ && in_block ? Group::kMuon : Group::kDecayed,
         .rows = rows,
         .cols = cols,
         .padding_rows =
             part == Part::kEmbedding || part == Part::kHead ? padded_rows(rows) - rows : 0,
         .init_std = std_of});
  }
  void vector(const char* name, Part part, std::int32_t layer, std::int64_t size, Init init) {
    add({.name = named(layer, name),
         .part = part,
         .layer = layer,
         .group = Group::kUndecayed,
         .cols = size,
         .init = init});
  }
  void norm(const char* name, const char* bias, Part part, std::int32_t layer) {
    if (model_.norm == spec::Norm::kRmsNormPlain) return;
    vector(name, part, layer, model_.dim, Init::kOnes);
    if (model_.norm == spec::Norm::kLayerNorm) vector(bias, part, layer, model_.dim, Init::kZeros);
  }
  void bias(const char* name, Part part, std::int32_t layer, std::int64_t size) {
    if (model_.bias) vector(name, part, layer, size, Init::kZeros);
  }
  void block(std::int32_t layer);

  const spec::ModelSpec& model_;
  bool muon_;
};

void ParameterList::block(std::int32_t layer) {
  const spec::ModelSpec& m = model_;
  // What is added to the residual stream 2 L times starts smaller, so that the stream does not grow
  // with depth.
  const double out_std = kInitStd / std::sqrt(2.0 * static_cast<double>(m.layers));
  const BlockShape s = block_shape(m);
  norm("attention_norm", "attention_norm_bias", Part::kAttentionNorm, layer);
  matrix("qkv", Part::kQkv, layer, s.qkv(), s.dim);
  bias("qkv_bias", Part::kQkv, layer, s.qkv());
  if (m.qk_norm == spec::QkNorm::kLearned) {
    vector("query_norm", Part::kQueryNorm, layer, m.head_dim, Init::kOnes);
    vector("key_norm", Part::kKeyNorm, layer, m.head_dim, Init::kOnes);
  }
  matrix("attention_out", Part::kAttentionOut, layer, s.dim, s.q, out_std);
  bias("attention_out_bias", Part::kAttentionOut, layer, s.dim);
  norm("mlp_norm", "mlp_norm_bias", Part::kMlpNorm, layer);
  matrix("gate_up", Part::kGateUp, layer, s.inner, s.dim);
  bias("gate_up_bias", Part::kGateUp, layer, s.inner);
  matrix("down", Part::kDown, layer, s.dim, s.ffn, out_std);
  bias("down_bias", Part::kDown, layer, s.dim);
}

void ParameterList::fill() {
  const spec::ModelSpec& m = model_;
  matrix("embedding", Part::kEmbedding, kNoLayer, m.vocab, m.dim);
  if (m.positions == spec::Positions::kLearned) {
    matrix("positions", Part::kPositions, kNoLayer, m.context, m.dim);
  }
  for (std::int32_t layer = 0; layer < m.layers; ++layer) block(layer);
  norm("final_norm", "final_norm_bias", Part::kFinalNorm, kNoLayer);
  if (!m.tied) matrix("head", Part::kHead, kNoLayer, m.vocab, m.dim);
}

}  // namespace

std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer) {
  ParameterList parameters(model, optimizer);
  parameters.fill();
  return std::move(parameters.list);
}

}  // namespace assay::step
