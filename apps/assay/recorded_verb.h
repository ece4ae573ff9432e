// Verbs that make files are recorded like any command; those that make pages about runs as that
// (store::kAboutRuns).
#pragma once

#include <functional>

#include "cli/verb.h"

namespace assay::cli {

// The verb, started again as the command of a recorded run with the same arguments, unless
// `makes_files` (asked after parsing) says that it makes none, there is no project here, or this
// process is part of a run already.
enum class AboutRuns { kNo, kYes };
Verb recorded(const Session& session, Verb verb, std::function<bool()> makes_files = {},
              AboutRuns about_runs = AboutRuns::kNo);

}  // namespace assay::cli
