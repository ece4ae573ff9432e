// What `assay report` is about: jobs of the store, experiments of `assay compare`, results of
// suites, each as what src/report makes its part of a page from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/page.h"
#include "report/run_record.h"
#include "store/store.h"

namespace assay::cli {

struct ReportWords {
  std::vector<std::string> what;
  std::string output, format, perfetto, prometheus, price, carbon;
};

// report_run.cc: a job, with what lineage, plans and prices know of it.
base::Result<report::RunRecord> run_record(store::Store& store, const std::string& name,
                                           const report::Rates& rates);
// --price and --carbon.
base::Result<report::Rates> rates_of(const ReportWords& words);

// report_plan.cc: what the model of a step says about a job of the trainer, or why it says nothing.
void add_prediction(report::RunRecord& run);
// Offers of the presets for the GPUs that the job had; none if they are not known.
std::vector<report::Offer> offers_of(const store::Job& job);

// report_experiment.cc: the experiment in a folder that `assay compare` wrote.
bool is_experiment(const std::filesystem::path& path);
base::Result<report::Part> experiment_in(const std::filesystem::path& directory);

}  // namespace assay::cli
