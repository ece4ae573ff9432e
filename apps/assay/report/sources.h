// What `assay report` reports on: runs of the store, experiments of `assay compare`, results of
// suites and plans of jobs, each turned into a part of a page by src/report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/page.h"
#include "report/reported_run.h"
#include "store/store.h"

namespace assay::cli {

struct ReportOptions {
  std::vector<std::string> what;
  std::string output, format, perfetto, prometheus, price, carbon;
};

// If several things are reported on one page, some may have no result yet; if only one, that is an
// error.
enum class IfEmpty { kFail, kExplain };

// sources_run.cc: a run with its lineage, its plan and prices.
base::Result<report::ReportedRun> reported_run(store::Store& store, const std::string& name,
                                               const report::Rates& rates);
// --price and --carbon.
base::Result<report::Rates> rates_of(const ReportOptions& options);

// sources_plan.cc: a file of `assay plan --json`, of a job or of a search.
bool is_plan(const std::filesystem::path& path);
base::Result<report::PagePart> plan_in(const std::filesystem::path& path, bool every_candidate);
// A job file, or a preset; planned now, with a search of machines and offers.
bool is_job(const std::string& name);
base::Result<report::PagePart> plan_of_job(const std::string& name, bool every_candidate);

// sources_experiment.cc: an experiment in a folder that `assay compare` wrote.
bool is_experiment(const std::filesystem::path& path);
base::Result<report::PagePart> experiment_in(const std::filesystem::path& directory,
                                             IfEmpty if_empty);

// A folder of a scan with an experiment per value: a part of all of them, then one for each.
bool is_scan(const std::filesystem::path& path);
base::Result<std::vector<report::PagePart>> scan_in(const std::filesystem::path& directory,
                                                    IfEmpty if_empty);

// sources_suite.cc: the result of a suite, as a JSON file or in a folder that `assay bench` wrote.
bool is_suite(const std::filesystem::path& path);
base::Result<report::PagePart> suite_in(const std::filesystem::path& path, IfEmpty if_empty);
// The folder of the suite's latest result in the project.
std::optional<std::filesystem::path> latest_result(const std::string& suite);
// The project's experiments, scans and suite results, the latest first.
std::vector<std::filesystem::path> latest_measurements();
// The error for a `name` that means nothing, given why it is not a run.
base::Error unknown_name_error(const std::string& name, base::Error no_run);

}  // namespace assay::cli
