// A plan as tables for people and as JSON for programs. Used by `assay plan`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/verb.h"
#include "plan/communication.h"
#include "plan/money.h"
#include "spec/load.h"

namespace assay::cli {

// What is known about a job before it runs.
struct Plan {
  spec::Loaded loaded;  // a job
  plan::Communication communication;
  // With the time of a step only:
  std::optional<plan::RunTime> run;
  std::vector<plan::OfferCost> costs;
  std::optional<plan::Energy> energy;
  std::vector<std::string> unknown;  // what could not be said, and what to set

  [[nodiscard]] const spec::JobSpec& job() const { return std::get<spec::JobSpec>(loaded.spec); }
};

void print_plan(const Session& session, const Plan& plan);
base::Json plan_json(const Plan& plan);

}  // namespace assay::cli
