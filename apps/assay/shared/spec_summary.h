// What a spec is, in one line, and what its device costs: for presets and plan.
#pragma once

#include <string>

#include "spec/load.h"

namespace assay::cli {

// One line: "8,030,261,248 parameters, 32 layers of 4096".
std::string summary(const spec::Loaded& loaded);

// The prices at which a job's or a cluster's device can be rented; none for other kinds.
spec::PriceList offers_for(const spec::Loaded& loaded, const spec::PriceList& prices);

}  // namespace assay::cli
