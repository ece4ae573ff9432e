// What a sceptic should know about an experiment's findings, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "compare/findings.h"

namespace assay::compare {

std::vector<std::string> remarks_on(const Measured& measured, double share,
                                    const Findings& findings);

}  // namespace assay::compare
