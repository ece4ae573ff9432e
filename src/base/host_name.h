// The name of this host.
#pragma once

#include <string>

namespace assay::base {

// As gethostname(2) has it; empty if that fails.
std::string host_name();

}  // namespace assay::base
