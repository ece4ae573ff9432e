// Whether the tensors of a snapshot are numbers, which a checkpoint promises.
#pragma once

#include <span>

#include "base/result.h"
#include "train/checkpoint/write.h"

namespace assay::train {

// Fails with the name of the first tensor that has an element that is infinite or not a number.
// Integers, such as the low halves of weights, are always numbers.
base::Result<void> check_finite(std::span<const checkpoint::SnapshotPart> parts);

}  // namespace assay::train
