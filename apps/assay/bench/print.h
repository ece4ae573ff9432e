// Suites and their outcomes, as tables for people.
#pragma once

#include <vector>

#include "cli/verb.h"
#include "suite/here.h"
#include "suite/outcome.h"

namespace assay::cli {

void print_suites(const Session& session, const std::vector<suite::Suite>& suites,
                  const suite::Here& here);
void print_outcome(const Session& session, const suite::Outcome& outcome);

}  // namespace assay::cli
