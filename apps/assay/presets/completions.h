// What shell completion offers for verbs that take a job.
#pragma once

#include <string>
#include <vector>

namespace assay::cli {

std::vector<std::string> job_presets();
// "model.layers=", for --set.
std::vector<std::string> override_keys();

}  // namespace assay::cli
