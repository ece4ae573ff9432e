// --export FILE: every run as CSV, or the verdicts as a Markdown table; by the file's extension.
#pragma once

#include <string>
#include <vector>

#include "assay/compare/json.h"
#include "base/result.h"

namespace assay::cli {

// Before anything runs: a usage error for an extension that is not .csv, .md or .json, an error for
// a place that cannot be written.
base::Result<void> check_exports(const std::vector<std::string>& files,
                                 const std::string& directory);

// Writes all files; relative names are relative to `directory`.
base::Result<void> export_experiment(const std::vector<std::string>& files,
                                     const std::string& directory, const ExperimentResult& result);
base::Result<void> export_scan(const std::vector<std::string>& files, const std::string& directory,
                               const ScanResult& scan);

}  // namespace assay::cli
