// A plan as tables for people and as JSON for programs. Used by `assay plan`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "cli/verb.h"
#include "plan/cost/money.h"
#include "plan/exchange/activations.h"
#include "plan/exchange/communication.h"
#include "plan/model/intervals.h"
#include "plan/prediction.h"
#include "plan/scaling.h"
#include "spec/load.h"

namespace assay::cli {

// What is known about a job before it runs.
struct Plan {
  spec::Loaded loaded;  // a job
  plan::Communication communication;
  std::vector<plan::ActivationCalls> activations;  // what else the same rank takes part in
  // Where the model can say something:
  std::optional<plan::Prediction> prediction;
  plan::Interval interval;                  // around its step
  std::vector<std::string> extrapolations;  // what no comparable row has
  std::vector<plan::ScalePoint> scaling;
  // Where the time of a step and the length of training are known:
  std::optional<plan::RunTime> run;
  bool step_given = false;  // by --step-time, not predicted
  std::vector<plan::OfferCost> costs;
  std::optional<plan::Energy> energy;
  std::vector<std::string> unknown;  // what could not be said, and what to set

  [[nodiscard]] const spec::JobSpec& job() const { return std::get<spec::JobSpec>(loaded.spec); }
};

void print_plan(const Session& session, const Plan& plan);
base::Json plan_json(const Plan& plan);

// A part of a step as people call it, in the order of a breakdown.
struct StepPart {
  const char* key;  // of JSON
  const char* name;
  base::Seconds time;
};
std::vector<StepPart> parts_of(const plan::StepTime& step);

// print_prediction.cc: breakdown, memory, scaling.
void print_prediction(const Session& session, const Plan& plan);

// To the cent; JSON has the millionths.
std::string cents(const base::Money& amount);
std::string cents(const spec::PriceRange& range);
base::Json range_json(const spec::PriceRange& range);

}  // namespace assay::cli
