// A job's plan as a part of a page: the answer, the breakdown of a step, memory, scaling,
// communication and, for a search, machines and offers with the recommendation.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

// The output of `assay plan JOB --json` and `assay plan JOB --search --json`; null: there is none.
struct PlanDocuments {
  base::Json plan = {};
  base::Json search = {};
  std::string not_searched = {};  // why there is no search, if one was expected
};

// Whether the JSON is one of the two.
bool is_plan_of_job(const base::Json& json);
bool is_search_of_job(const base::Json& json);

// `where` is the source of the JSON. `every_candidate`: the part's data includes all priced
// candidates, not only those on the Pareto front.
base::Result<PagePart> plan_part(PlanDocuments documents, const std::string& where,
                                 bool every_candidate);

}  // namespace assay::report
