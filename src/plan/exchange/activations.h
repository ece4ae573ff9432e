// What ranks that share a model exchange while they compute: activations and their gradients
// along tensor, context, expert and pipeline ranks, in closed form. As other software does it, and
// for layouts that our trainer has no program for; what its programs exchange is
// step/footprint.h's. What is exchanged about parameters is communication.h's.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/exchange/communication.h"
#include "spec/job.h"
#include "step/layout.h"

namespace assay::plan {

// All calls of one kind, type and axis of one rank in an optimizer step.
struct ActivationCalls {
  step::Axis axis = step::Axis::kTensor;
  CallSummary calls;
};

// Of a rank in that stage of the pipeline. `recompute` says what the backward pass does again, its
// exchanges included; kAuto counts as none.
std::vector<ActivationCalls> activation_calls(const spec::JobSpec& job, std::int64_t stage,
                                              spec::Recompute recompute);

}  // namespace assay::plan
