// Recomputation: what each policy keeps of a block's forward pass for its backward pass, and how a
// policy is chosen where the job leaves it open. The step, the planner's memory and
// both that choose (train/choose_recompute.cc, plan/prediction.cc) share this.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "spec/job.h"

namespace assay::step {

// Of a block's forward pass, beside the stream that comes in. The rest is computed again.
struct KeptParts {
  bool norms = true;
  bool attention = true;  // its inputs and results, and the stream after it
  bool gate_up = true;    // what goes into the activation
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

// A policy holds for all blocks of the model but the last: what that made is still there when its
// backward pass begins, so keeping it costs memory only beside the logits.
constexpr bool recomputes_layer(std::int64_t layer, std::int64_t layers) {
  return layer + 1 != layers;
}
// The same for `layers` blocks together, which `have_last`: how many are not recomputed.
constexpr double layers_kept(spec::Recompute policy, double layers, bool have_last) {
  if (policy == spec::Recompute::kNone) return layers;
  return have_last ? std::min(1.0, layers) : 0;
}

// Each computes more and keeps less than the one before.
inline constexpr std::array kRecomputePolicies = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                                  spec::Recompute::kFfn, spec::Recompute::kFull};

// The choice: the first that fits, which is the fastest. Asks fits(policy) for one after the other
// and ends with that one, or with the last; whether it fits.
template <class Policies, class Fits>
bool choose_recompute(const Policies& policies, Fits fits) {
  for (const auto policy : policies) {
    if (fits(policy)) return true;
  }
  return false;
}

}  // namespace assay::step
