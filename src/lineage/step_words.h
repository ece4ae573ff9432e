// The command of a recorded step, for `assay run @N`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace assay::lineage {

// `number` is what the user wrote after "@"; `sets` are "key=value". An error if there is no such
// step in the project of the working directory, if a key is no argument of it, or if its command
// held a secret, which was not kept.
base::Result<std::vector<std::string>> step_words(const std::string& number,
                                                  const std::vector<std::string>& sets);

}  // namespace assay::lineage
