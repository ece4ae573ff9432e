// How many parameters a rank has, and the passes that add gradients of micro-batches.
#include <cmath>

#include "spec/parameters.h"
#include "step/outliner.h"
#include "step/units.h"

namespace assay::step {

void Outliner::parameters() {
  const Sizes& s = sizes_;
  const auto block = static_cast<double>(norm_block(model_));
  const auto aligned = [&](double elements) { return std::ceil(elements / block) * block; };
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

  // A pass per unit over each micro-batch's gradients but the first one's, which are begun.
  const bool muon = choices_.optimizer == spec::Optimizer::kMuon;
  const bool block_vectors = vectors > (choices_.cut.last ? norms : 0);
  double units = s.layers * (muon && block_vectors ? 2 : 1);
  double folded = blocks + tables + vectors;
  if (choices_.cut.first) units += model_.positions == spec::Positions::kLearned ? 2 : 1;
  if (choices_.cut.last) units += norms > 0 || !model_.tied ? 1 : 0;
  if (choices_.cut.last && model_.tied) {
    units += 1;
    folded += aligned(s.vocab * s.dim);
  }
  if (s.micros <= 1) return;
  enter(Phase::kBackward, (s.micros - 1) * units);
  pass(Kind::kFold, Part::kAllGroups, 3 * folded / units * s.gradient);
}

}  // namespace assay::step
