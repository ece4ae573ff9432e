// A data mixture as written in a job: "web=0.7, code=0.3", i.e. shards or folders and their
// weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::spec {

struct MixPart {
  std::string path;
  double weight = 1;  // share of the tokens read, relative to the others
};

// Errors say what is wrong, not where. Paths may contain '=', but not ','.
base::Result<std::vector<MixPart>> parse_mix(std::string_view text);

}  // namespace assay::spec
