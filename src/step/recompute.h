// Recomputation: what each policy keeps of a block's forward pass for its backward pass, and how a
// policy is chosen if the job leaves it open. Used by the step, by the planner's memory model, and
// by those that choose (train/planned_step.cc, plan/prediction.cc, plan/rank_footprints.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "spec/job.h"

namespace assay::step {

// What is kept of a block's forward pass, in addition to its input. The rest is recomputed.
struct KeptParts {
  bool norms = true;
  bool attention = true;  // its inputs and results, and the stream after it
  bool gate_up = true;    // the input of the activation function
  bool activation = true;
};

constexpr KeptParts kept_by(spec::Recompute policy) {
  switch (policy) {
    case spec::Recompute::kNone:
    case spec::Recompute::kAuto:
      break;
    case spec::Recompute::kCheap:
      return {.norms = false, .activation = false};
    case spec::Recompute::kFfn:
      return {.norms = false, .gate_up = false, .activation = false};
    case spec::Recompute::kFull:
      return {.norms = false, .attention = false, .gate_up = false, .activation = false};
  }
  return {};
}

// A policy applies to all blocks of the model except the last: that one's activations are still
// there when its backward pass begins, so keeping them only adds to the memory used along with the
// logits.
constexpr bool recomputes_layer(std::int64_t layer, std::int64_t layers) {
  return layer + 1 != layers;
}

// Each recomputes more and keeps less than the previous one.
inline constexpr std::array kRecomputePolicies = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                                  spec::Recompute::kFfn, spec::Recompute::kFull};

// Chooses the first policy that fits, which is the fastest: calls fits(policy) for one after the
// other until it returns true. False if none fits; the last was then tried last.
template <class Policies, class Fits>
bool choose_recompute(const Policies& policies, Fits fits) {
  for (const auto policy : policies) {
    if (fits(policy)) return true;
  }
  return false;
}

}  // namespace assay::step
