// A scan with an experiment per value: DIR/scan.json lists them, DIR/NAME/ has each one's journal.
#pragma once

#include <filesystem>

#include "assay/compare/json.h"
#include "assay/compare/options.h"
#include "base/result.h"
#include "cli/verb.h"

namespace assay::cli {

// What scan.json lists.
struct ScanPlan {
  std::vector<std::string> parameters;
  std::vector<compare::ScanPoint> points;  // at least one
};
base::Result<ScanPlan> read_scan_plan(const std::filesystem::path& directory);

bool is_scan_folder(const std::filesystem::path& directory);

// Ends early, without error, after an interruption or when an arm fails.
base::Result<ScanResult> begin_scan(const Session& session, RequestedExperiments requested,
                                    const std::filesystem::path& directory);
// Runs what is missing. Finished experiments run again only if `options` changes their rules.
base::Result<ScanResult> resume_scan(const Session& session, const CompareOptions& options,
                                     const std::filesystem::path& directory);

}  // namespace assay::cli
