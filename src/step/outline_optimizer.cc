// The optimizer of a step: one pass over this rank's share of every group of parameters.
#include <cmath>

#include "spec/parameters.h"
#include "step/outliner.h"
#include "step/parameters.h"

namespace assay::step {

void Outliner::optimizer() {
  const Sizes& s = sizes_;
  const bool muon = choices_.optimizer == spec::Optimizer::kMuon;
  const auto aligned = [](double elements) {
    constexpr double kRound = kTensorAlignment;
    return std::ceil(elements / kRound) * kRound;
  };
  const double width = s.q + 2 * s.kv;
  const double mixtures = model_.is_moe() ? s.layers * static_cast<double>(model_.moe_layers()) /
                                                static_cast<double>(model_.layers)
                                          : 0;
  const double experts =
      static_cast<double>(model_.experts) / static_cast<double>(choices_.cut.expert);
  const double mlps = s.layers - mixtures + mixtures * experts;
  const double valued = model_.value_embeddings ? std::ceil(s.layers / 2) : 0;
  const struct {
    Part part;
    double elements;
    double count;
  } matrices[] = {
      {Part::kQkv, width * s.dim, s.layers},
      {Part::kAttentionOut, s.dim * s.q, s.layers},
      {Part::kGateUp, s.inner * s.dim, mlps},
      {Part::kDown, s.dim * s.ffn, mlps},
      {Part::kRouter, static_cast<double>(model_.experts) * s.dim, mixtures},
      {Part::kValueEmbedding,
       s.kv / static_cast<double>(model_.head_dim) * static_cast<double>(spec::kValueGateChannels),
       valued}};
  double blocks = 0;
  for (const auto& matrix : matrices) blocks += matrix.count * aligned(matrix.elements);
  double tables = valued * aligned(s.vocab * static_cast<double>(model_.kv_dim()));
  if (choices_.cut.first || (model_.tied && choices_.cut.last)) tables += aligned(s.vocab * s.dim);
  if (choices_.cut.first && model_.positions == spec::Positions::kLearned) {
    tables += aligned(static_cast<double>(model_.context) * s.dim);
  }
  if (choices_.cut.last && !model_.tied) tables += aligned(s.vocab * s.dim);
  const double norms = norm_weights() * aligned(s.dim);
  double vectors = s.layers * 2 * norms + (choices_.cut.last ? norms : 0);
  if (model_.bias) {
    vectors += s.layers * (aligned(width) + aligned(s.dim));
    vectors += mlps * (aligned(s.inner) + aligned(s.dim));
  }
  if (model_.qk_norm == spec::QkNorm::kLearned) {
    vectors += s.layers * 2 * aligned(static_cast<double>(model_.head_dim));
  }
  if (model_.residual_lambdas) vectors += 2 * aligned(s.layers);
  outline_.parameters = blocks + tables + vectors;

  const auto share = static_cast<double>(choices_.cut.state);
  constexpr double kScalarBytes = 4.0 * static_cast<int>(Scalar::kScalars);
  const double remainder = choices_.numerics.remainders ? 2 : 0;
  const auto moment = static_cast<double>(bytes_of(choices_.numerics.moments));
  const auto update = [&](Kind kind, Part part, double elements, double moments, double count) {
    if (elements * count == 0) return;
    enter(Phase::kOptimizer, count);
    const double changed = s.weight + remainder + moments * moment;
    pass(kind, part, elements / share * (s.gradient + 2 * changed) + kScalarBytes);
  };
  enter(Phase::kOptimizer, 1);
  pass(Kind::kGradientNorm, Part::kAllGroups,
       (blocks + tables + vectors) / share * s.gradient + kScalarBytes);
  if (muon) {
    for (const auto& matrix : matrices) {
      update(Kind::kMuon, matrix.part, matrix.elements, 1, matrix.count);
    }
  }
  update(Kind::kAdamw, Part::kDecayed, tables + (muon ? 0 : blocks), 2, 1);
  update(Kind::kAdamw, Part::kUndecayed, vectors, 2, 1);
}

}  // namespace assay::step
