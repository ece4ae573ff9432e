// The pieces of a dense layer at full clock: products, attention's core, element-wise passes.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/rank_share.h"
#include "plan/model/work.h"

namespace assay::plan {

struct LayerProducts {
  TwoWays all;  // projections of attention and the dense MLP, weighted by the layers that have it
  // Of them forward: the MLP's first and last.
  double up = 0;
  double down = 0;
};
LayerProducts layer_products(const Work& work, const RankShare& rank, const Constants& constants);

struct AttentionTime {
  TwoWays cores;   // tensor cores at work
  TwoWays memory;  // scores that are written and read, without flash
};
AttentionTime attention_time(const Work& work, const RankShare& rank, const Constants& constants);

// Forward; the backward pass takes twice as long.
struct LayerPasses {
  double total = 0;
  double norms = 0;
  double activation = 0;
  double result = 0;  // the second residual: what the layer hands on
};
// Of a layer's parameters, in memory, each micro-batch: gradients are added up, and FSDP copies
// weights out of what it gathered and gradients into what it reduces.
TwoWays parameter_passes(const Work& work, const RankShare& rank, const Constants& constants);

LayerPasses layer_passes(const Work& work, const RankShare& rank, const Constants& constants);

}  // namespace assay::plan
