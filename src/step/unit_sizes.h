// UnitSizes: how large each kind of unit (units.h) is on a rank of tensor and expert parallelism.
// What data ranks exchange together, and add up, follows from it and their number.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace assay::step {

// Elements, before they are filled up so that data ranks have equal parts; 0: there is none.
struct UnitSizes {
  std::int64_t attention = 0;  // of a block, where its halves are units of their own
  std::int64_t dense_mlp = 0;
  std::int64_t mixture_mlp = 0;
  // Where ranks have different experts, a mixture's are a unit of their own, and all else of its
  // block is one.
  std::int64_t experts = 0;
  std::int64_t beside_experts = 0;
  std::int64_t embedding = 0;
  std::int64_t positions = 0;
  std::int64_t head = 0;   // with the final norm
  std::int64_t block = 1;  // norm_block(): ranks' parts end at multiples of it

  // With what fills it up.
  [[nodiscard]] std::int64_t filled(std::int64_t elements, std::int64_t data_ranks) const {
    const std::int64_t multiple = data_ranks * block;
    return (elements + multiple - 1) / multiple * multiple;
  }
};

// With AdamW, whose units are filled up, unlike Muon's matrices.
UnitSizes unit_sizes(const spec::ModelSpec& model, std::int64_t tensor_ranks,
                     std::int64_t expert_ranks = 1);

}  // namespace assay::step
