// Which layouts other software than ours executes: what it can divide over ranks. Our trainer has
// TrainerRules.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/model/software.h"
#include "spec/job.h"

namespace assay::plan {

// "layout.cp: nanochat has no context parallelism"; empty where it executes the layout.
std::string missing_in(Framework framework, const spec::LayoutSpec& layout);

// The same as an error that says what to do.
base::Result<void> check_layout_run(Framework framework, const spec::JobSpec& job);

}  // namespace assay::plan
