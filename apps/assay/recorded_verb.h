// Verbs that make files are recorded like any command; those that make pages about runs as that
// (store::kAboutRuns).
#pragma once

#include <functional>

#include "cli/verb.h"

namespace assay::cli {

// Wraps a verb so that it restarts itself as the command of a recorded run, with the same
// arguments. It does not if `makes_files` (called after parsing) returns false, if there is no
// project here, or if this process is already part of a run.
enum class AboutRuns { kNo, kYes };
Verb recorded(const Session& session, Verb verb, std::function<bool()> makes_files = {},
              AboutRuns about_runs = AboutRuns::kNo);

}  // namespace assay::cli
