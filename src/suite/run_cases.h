// Runs the cases of a suite, one after the other, each in its own processes: if one fails, its
// output is kept and the others still run.
#pragma once

#include <functional>
#include <vector>

#include "compare/timed_process.h"
#include "suite/folder.h"

namespace assay::suite {

// Called before each case that runs, with its number from 1.
using CaseCallback = std::function<void(std::size_t number, const SuiteCase& suite_case)>;

// One entry per case, in order. Cases that are already done do not run again; after an interruption
// the rest is kNotReached. Errors concern the folder, not a case.
base::Result<std::vector<CaseRun>> run_cases(const SuiteFolder& folder, const SuiteHost& host,
                                             const compare::Interrupts& interrupts,
                                             const CaseCallback& callback = {});

}  // namespace assay::suite
