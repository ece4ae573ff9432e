// Launch shapes for kernels that hold a row in the registers of one block.
#pragma once

#include <type_traits>

#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {

inline constexpr int kRowThreads = 256;

// Rows of up to 4096 elements use small blocks, so that more of them fit on a multiprocessor: while
// some sum, others read. Up to four vectors per thread were measured to be fastest.
template <class Launch>
void with_vectors(std::int64_t vectors, Launch launch) {
  const auto threads = [&](std::int64_t each) {
    return static_cast<int>((vectors + each * kWarp - 1) / (each * kWarp) * kWarp);
  };
  constexpr int kFew = kRowThreads / 2;
  if (vectors <= kFew) return launch(std::integral_constant<int, 1>{}, threads(1));
  if (vectors <= 2 * kFew) return launch(std::integral_constant<int, 2>{}, threads(2));
  if (vectors <= 4 * kRowThreads) return launch(std::integral_constant<int, 4>{}, threads(4));
  launch(std::integral_constant<int, 8>{}, threads(8));
}

}  // namespace assay::train::cuda
