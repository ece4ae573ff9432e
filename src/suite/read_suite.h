// Reads a suite file: from TOML to a Suite in which every name is resolved.
#pragma once

#include <string>

#include "base/result.h"
#include "suite/suite.h"

namespace assay::suite {

// `source` names the text in errors. Files of earlier versions, which call cases steps, are read
// too.
base::Result<Suite> read_suite(const std::string& text, const std::string& source);

}  // namespace assay::suite
