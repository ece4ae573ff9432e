// Stored elements as numbers, for people: what diff prints.
#pragma once

#include <cstddef>
#include <span>

#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

// The number in these dtype_bytes() bytes, little-endian. Integers beyond 2^53 are rounded.
double element_value(Dtype dtype, std::span<const std::byte> bytes);

// |a - b|, of integers before rounding.
double element_difference(Dtype dtype, std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace assay::checkpoint
