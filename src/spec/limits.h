// The largest values a spec may have: far above any real machine, and small enough that the
// arithmetic that follows stays exact in 64 bits.
#pragma once

namespace assay::spec {

inline constexpr double kMostNodes = 1e6;
inline constexpr double kMostDegree = 1e6;  // of one kind of parallelism
inline constexpr double kMostRanks = 1e7;
inline constexpr double kMostCpus = 1e6;
inline constexpr double kMostNumaNodes = 1e4;
inline constexpr double kMostSequences = 1e6;  // per micro-batch, and micro-batches per step
inline constexpr double kMostStepTokens = 1e12;
inline constexpr double kMostTokens = 1e17;

}  // namespace assay::spec
