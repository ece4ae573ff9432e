// What our trainer exchanges about parameters, in closed form: the gradients of every micro-batch
// go by all-to-all to the ranks that keep their sums, which add them in order
// (step/builder_exchange.cc). Searches price this; folded_exchange_test.cc compares it with the
// programs (step/footprint.h).
#pragma once

#include "plan/model/exchange_time.h"
#include "plan/model/rank_share.h"
#include "plan/model/stages.h"
#include "plan/model/work.h"

namespace assay::plan {

// Elements of a rank in the stage that has most of them, before shards divide them.
struct TrainedPart {
  double layers = 0;   // layers of the rank
  double blocks = 0;   // their parameters, without experts that are spread over ranks
  double experts = 0;  // parameters of those experts
  double table = 0;    // the embedding, or the head
  double tables = 0;   // vocabulary tables that the rank keeps
  double used = 0;  // tables that a micro-batch uses: a table that is also the head is used twice
  double gathered = 0;  // tables gathered; a table that is also the head counts once

  // That all ranks of an axis have.
  [[nodiscard]] double held() const { return blocks + tables * table; }
  [[nodiscard]] double made() const { return blocks + used * table; }  // gradients
};
TrainedPart trained_part(const Work& work);

// The groups of ranks that exchange.
struct FoldedAxes {
  RankAxis data;      // ranks that read different tokens
  RankAxis shards;    // ranks that divide the training state
  RankAxis replicas;  // ranks with the same part of the state
  // data and shards, among ranks with the same experts.
  RankAxis expert_data;
  RankAxis expert_shards;
};
FoldedAxes folded_axes(const Work& work);

// Units that a layer is gathered in: experts that only some ranks hold are a separate unit.
double units_of_layer(const Work& work);

// Units of blocks per step that need no gathering, because they are still held from the pass
// before.
double resident_units(const Work& work, double units);

// Bytes that adding gradients up reads and writes in a step.
double folded_bytes(const Work& work);

}  // namespace assay::plan
