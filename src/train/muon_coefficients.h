// The Newton-Schulz iteration by which Muon makes a matrix nearly orthogonal, the same on every
// backend; as published (Jordan et al., 2024).
#pragma once

namespace assay::train::muon_iteration {

inline constexpr int kIterations = 5;
// x <- kLinear x + (kCubic g + kQuintic g g) x, with g = x x^T
inline constexpr float kLinear = 3.4445F;
inline constexpr float kCubic = -4.7750F;
inline constexpr float kQuintic = 2.0315F;

}  // namespace assay::train::muon_iteration
