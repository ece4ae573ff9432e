// Stored elements as numbers, for the output of diff.
#pragma once

#include <cstddef>
#include <span>

#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

// The number in these dtype_bytes() bytes, little-endian. Integers beyond 2^53 are rounded.
double element_value(TensorDtype dtype, std::span<const std::byte> bytes);

// |a - b|; integers are subtracted before the result is rounded.
double element_difference(TensorDtype dtype, std::span<const std::byte> a,
                          std::span<const std::byte> b);

}  // namespace assay::checkpoint
