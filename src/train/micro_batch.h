// MicroBatch: the data that a kRead op copies to the device, and its destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "step/op.h"

namespace assay::train {

// Only the parts that the program reads need be present.
struct MicroBatch {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> targets;         // negative ones are ignored
  std::span<const std::int32_t> documents = {};  // see step::Op::documents
};

// The destinations of a kRead; null: that part is not read.
struct ReadPlaces {
  const step::View* tokens = nullptr;
  const step::View* targets = nullptr;
  const step::View* documents = nullptr;

  explicit ReadPlaces(const step::Op& op) {
    std::size_t at = 0;
    const std::size_t end = op.out.size() - (op.documents ? 1 : 0);
    if (op.part == step::ModelPart::kEmbedding) tokens = &op.out[at++];
    if (at < end) targets = &op.out[at];
    if (op.documents) documents = &op.out[end];
  }
};

}  // namespace assay::train
