// A plan of a job as a part of a page: the answer, where a step goes, memory, scaling, what ranks
// exchange, and, of a search, machines and offers with what is recommended.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

// As `assay plan JOB --json` and `assay plan JOB --search --json` print them; null: there is none.
struct PlanDocuments {
  base::Json plan = {};
  base::Json search = {};
  std::string not_searched = {};  // why there is no search, where there should be one
};

// Whether the JSON is one of the two.
bool is_plan_of_job(const base::Json& json);
bool is_search_of_job(const base::Json& json);

// `where` it was read from. `every_candidate`: all that were priced are in the part's data, not
// those alone that nothing else beats.
base::Result<Part> plan_part(PlanDocuments documents, const std::string& where,
                             bool every_candidate);

}  // namespace assay::report
