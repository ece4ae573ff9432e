// A mixture of data as a job writes it: "web=0.7, code=0.3", shards or folders and their weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::spec {

struct MixPart {
  std::string path;
  double weight = 1;  // of the tokens that are read, relative to the others
};

// Errors say what is wrong, not where it stands. Paths may contain '=', but no ','.
base::Result<std::vector<MixPart>> parse_mix(std::string_view text);

}  // namespace assay::spec
