// What `assay report` is about: runs of the store, experiments of `assay compare`, results of
// suites, each as what src/report makes its part of a page from.
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

struct ReportWords {
  std::vector<std::string> what;
  std::string output, format, perfetto, prometheus, price, carbon;
};

// report_run.cc: a run, with what lineage, plans and prices know of it.
base::Result<report::ReportedRun> run_record(store::Store& store, const std::string& name,
                                             const report::Rates& rates);
// --price and --carbon.
base::Result<report::Rates> rates_of(const ReportWords& words);

// plan.cc: what was predicted about a run of the trainer, or why nothing was.
void add_prediction(store::Store& store, report::ReportedRun& run);
// Offers of the presets for the GPUs that the run had; none if they are not known.
std::vector<report::Offer> offers_of(const store::RunRecord& record);

// report_experiment.cc: the experiment in a folder that `assay compare` wrote.
bool is_experiment(const std::filesystem::path& path);
base::Result<report::Part> experiment_in(const std::filesystem::path& directory);

// report_suite.cc: the result of a suite, as a JSON file or in a folder that `assay bench` wrote.
bool is_suite(const std::filesystem::path& path);
base::Result<report::Part> suite_in(const std::filesystem::path& path);
// The folder of the latest run of the suite in the project that has a result.
std::optional<std::filesystem::path> latest_result(const std::string& suite);
// Of a word that names neither: `no_run` is why no run is meant.
base::Error nothing_called(const std::string& word, base::Error no_run);

}  // namespace assay::cli
