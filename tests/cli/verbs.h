// The verbs of the program, read from its own help, so that no test has a list to forget one in.
#pragma once

#include <string>
#include <vector>

namespace assay {

// "presets", "presets list", …
std::vector<std::string> all_verbs();

}  // namespace assay
