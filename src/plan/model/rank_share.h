// RankShare: figures that all parts of the model need, for one rank and one micro-batch of a Work.
// Computed once per prediction.
#pragma once

#include "plan/model/constants.h"
#include "plan/model/op_time.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RankShare {
  double tokens = 0;         // of a micro-batch
  double routed_tokens = 0;  // tokens that this rank sends to experts
  double sequence_cut = 1;   // ranks over which norms and residuals are split
  double qkv = 0;            // columns of the joint product
  double ffn = 0;            // mean width over layers, of all experts that a token visits; uncut

  ProductRate products;       // of the layers
  ProductRate head;           // and of attention's own products
  double memory_rate = 0;     // reached by element-wise passes
  double operators_kept = 1;  // share that fusion leaves
  double host_per_operator = 0;

  bool trained = true;         // weights have gradients
  double moe_share = 0;        // of the layers
  bool naive_experts = false;  // the model has experts, and the software has no grouped products
  double local_experts = 1;
  double expert_parameters = 0;      // per layer, mean over all layers; uncut
  double expert_cut = 1;             // ranks of tensor parallelism over which an expert is split
  bool experts_over_tensor = false;  // whole experts are spread over these ranks too
  bool gathers_rows = false;         // experts are split over ranks that gather their rows
};

RankShare rank_share(const Work& work, const Constants& constants);

// Of `ranks` that have the same dense layers, those that hold the same experts.
double expert_holders(const Degrees& degrees, const RankShare& rank, double ranks);
// How far apart those are.
double expert_holders_apart(const Degrees& degrees, const RankShare& rank);

// Bytes of parameters and gradients that FSDP holds unsharded during a step: a few units, not the
// whole model.
double unsharded_units(const Work& work, const RankShare& rank);

}  // namespace assay::plan
