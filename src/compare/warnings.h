// Warnings about an experiment's findings: what could make them wrong, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "compare/findings.h"

namespace assay::compare {

std::vector<std::string> warnings_about(const Measured& measured, double alpha_share,
                                        const Findings& findings);

}  // namespace assay::compare
