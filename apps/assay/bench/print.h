// Prints the list of suites and the outcome of one as tables.
#pragma once

#include <vector>

#include "cli/verb.h"
#include "suite/outcome.h"
#include "suite/suite_host.h"

namespace assay::cli {

void print_suites(const Session& session, const std::vector<suite::Suite>& suites,
                  const suite::SuiteHost& host);
void print_outcome(const Session& session, const suite::SuiteOutcome& outcome);

}  // namespace assay::cli
