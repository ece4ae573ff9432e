// What `assay plan JOB` prints: a job's plan as tables for people (print.cc) and as JSON for
// programs (print_json.cc).
#pragma once

#include <string>

#include "assay/plan/job.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/verb.h"

namespace assay::cli {

void print_plan(const Session& session, const JobPlan& plan);
base::Json plan_json(const JobPlan& plan);

// print_prediction.cc: breakdown, memory, scaling.
void print_prediction(const Session& session, const JobPlan& plan);

// To the cent; JSON has the millionths.
std::string cents(const base::Money& amount);
std::string cents(const spec::PriceRange& range);
base::Json range_json(const spec::PriceRange& range);

}  // namespace assay::cli
