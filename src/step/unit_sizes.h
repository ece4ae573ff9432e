// UnitSizes: the size of each kind of unit (units.h) on a tensor- and expert-parallel rank. With
// the number of data ranks it determines what they exchange and sum.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace assay::step {

// Elements, before padding to equal parts for all data ranks; 0: there is no such unit.
struct UnitSizes {
  std::int64_t attention = 0;  // of a block, if its halves are separate units
  std::int64_t dense_mlp = 0;
  std::int64_t mixture_mlp = 0;
  // With expert parallelism, a mixture's experts are a separate unit, and the rest of its block is
  // another.
  std::int64_t experts = 0;
  std::int64_t beside_experts = 0;
  std::int64_t embedding = 0;
  std::int64_t positions = 0;
  std::int64_t head = 0;   // with the final norm
  std::int64_t block = 1;  // norm_block(): ranks' parts end at multiples of it

  // Including padding.
  [[nodiscard]] std::int64_t filled(std::int64_t elements, std::int64_t data_ranks) const {
    const std::int64_t multiple = data_ranks * block;
    return (elements + multiple - 1) / multiple * multiple;
  }
};

// For AdamW, whose units are padded; Muon's matrices are not.
UnitSizes unit_sizes(const spec::ModelSpec& model, std::int64_t tensor_ranks,
                     std::int64_t expert_ranks = 1);

}  // namespace assay::step
