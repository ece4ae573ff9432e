// Plans of jobs for a report: what `assay plan --json` wrote, or a job, planned and searched now.
#include <algorithm>

#include "assay/plan/modes.h"
#include "assay/plan/print.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "report/plan_part.h"
#include "spec/presets.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestPlan(std::int64_t{256} << 20U);

base::Json json_in(const fs::path& path) {
  const auto text = base::read_file(path, kLargestPlan);
  return text ? base::Json::parse(*text, nullptr, false) : base::Json();
}

}  // namespace

bool is_plan(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() != ".json" || !fs::is_regular_file(path, ignored)) return false;
  const base::Json json = json_in(path);
  return report::is_plan_of_job(json) || report::is_search_of_job(json);
}

base::Result<report::PagePart> plan_in(const fs::path& path, bool every_candidate) {
  base::Json json = json_in(path);
  report::PlanDocuments documents{};
  (report::is_search_of_job(json) ? documents.search : documents.plan) = std::move(json);
  return report::plan_part(std::move(documents), path.string(), every_candidate);
}

bool is_job(const std::string& name) {
  if (name.ends_with(".toml")) return true;
  const std::vector<std::string> jobs = spec::preset_names(spec::Kind::kJob);
  return std::find(jobs.begin(), jobs.end(), name) != jobs.end();
}

base::Result<report::PagePart> plan_of_job(const std::string& name, bool every_candidate) {
  PlanOptions options;
  options.job = name;
  ASSAY_TRY(const JobPlan plan, make_job_plan(options));
  report::PlanDocuments documents{.plan = plan_json(plan)};
  if (auto search = search_json(options)) {
    documents.search = *std::move(search);
  } else {
    documents.not_searched = "There is no search: " + search.error().line();
  }
  return report::plan_part(std::move(documents), name, every_candidate);
}

}  // namespace assay::cli
