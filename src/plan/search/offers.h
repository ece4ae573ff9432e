// The offers for one number of machines, each as a candidate. Internal to src/plan/search.
#pragma once

#include <vector>

#include "plan/search/search.h"

namespace assay::plan {

// `run` is on the machines of `base`, whose layout is chosen; what cannot be done goes to
// `rejected`.
base::Result<std::vector<Candidate>> candidates_by_offer(const Candidate& base,
                                                         const RunOnMachines& run,
                                                         const spec::PriceList& offers,
                                                         const SearchChoices& choices,
                                                         std::vector<Rejection>& rejected);

}  // namespace assay::plan
