// What changes from step to step: the learning rate and the other settings of a step, and the
// numbers that an update of weights computes from them, the same on every backend.
#pragma once

#include <cstdint>

namespace assay::spec {
struct TrainSpec;
}

namespace assay::train {

// Values that change from step to step or do not affect the program's shape.
struct StepSettings {
  std::int64_t step = 1;  // counted from 1
  double learning_rate = 0;
  double muon_learning_rate = 0;
  double muon_momentum = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double clip = 0;  // 0: gradients are not clipped
  double z_loss = 0;
  double counted_targets = 0;  // over all ranks and micro-batches; gradients are divided by it
  // For mixtures of experts.
  double balance_loss = 0;
  double router_z_loss = 0;
  double balance_rate = 0;
};

// The fraction of the peak learning rate at `step`, which counts from 1 to `steps`: a warm-up from
// zero, then cosine, linear, constant or warm-up-stable-decay.
double schedule(const spec::TrainSpec& train, std::int64_t step, std::int64_t steps);

// `counted_targets`: over all ranks.
StepSettings settings_of_step(const spec::TrainSpec& train, std::int64_t step, std::int64_t steps,
                              std::int64_t counted_targets);

// AdamW in fp32. A weight is multiplied by `keep`, then moves by rate (m correct1) /
// (sqrt(v correct2) + epsilon).
struct AdamwNumbers {
  float beta1 = 0;
  float beta2 = 0;
  float rate = 0;
  float correct1 = 0;
  float correct2 = 0;
  float epsilon = 0;
  float keep = 0;
};
// `decays`: the parameters have weight decay.
AdamwNumbers adamw_numbers(const StepSettings& settings, bool decays);

struct MuonNumbers {
  float beta = 0;
  float rate = 0;
  float keep = 0;
};
// Of a matrix with these extents.
MuonNumbers muon_numbers(const StepSettings& settings, std::int64_t rows, std::int64_t cols);

// The Newton-Schulz iteration by which Muon makes a matrix nearly orthogonal; as published (Jordan
// et al., 2024).
namespace muon_iteration {

inline constexpr int kIterations = 5;
// x <- kLinear x + (kCubic g + kQuintic g g) x, with g = x x^T
inline constexpr float kLinear = 3.4445F;
inline constexpr float kCubic = -4.7750F;
inline constexpr float kQuintic = 2.0315F;

}  // namespace muon_iteration

}  // namespace assay::train
