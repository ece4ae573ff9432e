#include "assay/presets/completions.h"

#include "spec/presets.h"
#include "spec/schema.h"

namespace assay::cli {

std::vector<std::string> job_presets() {
  return spec::preset_names(spec::Kind::kJob);
}

std::vector<std::string> override_keys() {
  std::vector<std::string> keys;
  for (const spec::KeyDoc& key : spec::all_keys()) {
    if (!key.path.starts_with("price.")) keys.push_back(key.path + "=");
  }
  return keys;
}

}  // namespace assay::cli
