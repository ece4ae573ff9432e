// PlannedExchange: what one rank of a job exchanges in an optimizer step, as the plan shows it.
//
// For jobs that our trainer executes it is counted from the program that the trainer executes
// (step/footprint.h). For everything else it is a closed form of the parameters' exchange
// (communication.h) and of the activations' (activations.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/exchange/communication.h"
#include "spec/job.h"
#include "step/footprint.h"

namespace assay::plan {

struct PlannedCalls {
  // "weights", "gradients", "activations", "losses, norm"; of a closed form "parameters" or the
  // axis that activations are passed along.
  std::string about;
  std::string among;       // the axis of the ranks; empty: not known
  std::int64_t ranks = 0;  // along it; 0: not known
  CallSummary calls;
};

struct PlannedExchange {
  bool counted = false;     // from the trainer's program: exact
  std::string not_counted;  // why the trainer has no program for the job; empty: it has one
  std::string scheme;       // for people
  std::int64_t rank = 0;    // whose exchange this is
  std::int64_t stage = 0;   // pipeline stage of this rank
  std::vector<GroupTraffic> groups;
  std::vector<PlannedCalls> calls;
  double sent_bytes = 0;  // about parameters: a ring's share of every message

  // About parameters: of all groups.
  [[nodiscard]] Volume bytes() const;
  [[nodiscard]] Volume two_byte_bytes() const;
};

PlannedExchange exchange_of(const step::Footprint& footprint);

// Fails only when the bytes do not fit 64 bits. `recompute` as activation_calls has it, `habits`
// as communication_of.
base::Result<PlannedExchange> exchange_in_closed_form(const spec::JobSpec& job,
                                                      spec::Recompute recompute,
                                                      const ExchangeHabits& habits = {});

}  // namespace assay::plan
