// Rows that one block holds in its registers: how many vectors of 8 each thread has of it.
#pragma once

#include <type_traits>

#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {

inline constexpr float kNormEpsilon = 1e-5F;
inline constexpr int kRowThreads = 256;

// The fewest vectors per thread that fit a row into one block, and the threads it takes then.
template <class Launch>
void with_vectors(std::int64_t vectors, Launch launch) {
  const auto threads = [&](std::int64_t each) {
    return static_cast<int>((vectors + each * kWarp - 1) / (each * kWarp) * kWarp);
  };
  if (vectors <= kRowThreads) return launch(std::integral_constant<int, 1>{}, threads(1));
  if (vectors <= 2 * kRowThreads) return launch(std::integral_constant<int, 2>{}, threads(2));
  if (vectors <= 4 * kRowThreads) return launch(std::integral_constant<int, 4>{}, threads(4));
  launch(std::integral_constant<int, 8>{}, threads(8));
}

}  // namespace assay::train::cuda
