#include "assay/compare/scan.h"

#include <fmt/format.h>

#include "base/file.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr const char* kScanFile = "scan.json";
constexpr base::Bytes kLargestScan(std::int64_t{64} << 20U);

Json plan_json(const ScanPlan& plan) {
  Json points = Json::array();
  for (const compare::ScanPoint& point : plan.points) {
    points.push_back({{"name", point.name},
                      {"values", point.values},
                      {"experiment", compare::to_json(point.experiment)}});
  }
  return {{"scanned", plan.parameters}, {"points", std::move(points)}};
}

// The result of an experiment whose last session reached its end; nothing otherwise.
std::unique_ptr<ExperimentResult> finished_result(const fs::path& directory) {
  auto measured = compare::read_journal(directory);
  if (!measured || measured->analyses.empty()) return nullptr;
  const compare::InterimAnalysis last = measured->analyses.back();
  if (last.run != measured->last_run() || !(last.alpha_share > 0)) return nullptr;
  auto result = std::make_unique<ExperimentResult>();
  result->measured = *std::move(measured);
  result->findings = compare::findings_of(result->measured, last.alpha_share);
  result->stop = last.stop;
  if (!result->measured.sessions.empty()) {
    result->preflight = result->measured.sessions.back().preflight;
  }
  result->directory = directory;
  return result;
}

// `execute` runs or finds the experiment of one point.
template <class Execute>
base::Result<ScanResult> run_points(const ScanPlan& plan, const fs::path& directory,
                                    const Execute& execute) {
  ScanResult scan{.parameters = plan.parameters, .points = {}, .directory = directory};
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const compare::ScanPoint& point = plan.points[i];
    const std::string title = fmt::format("{} ({} of {}): ", point.name, i + 1, plan.points.size());
    ASSAY_TRY(std::unique_ptr<ExperimentResult> result,
              execute(point, directory / point.name, title));
    const bool stopped =
        result->stop == compare::StopReason::kNo || result->stop == compare::StopReason::kFailed;
    scan.points.push_back({point.name, point.values, std::move(result)});
    if (stopped) break;
  }
  return scan;
}

}  // namespace

base::Result<ScanPlan> read_scan_plan(const fs::path& directory) {
  const fs::path file = directory / kScanFile;
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestScan));
  const Json json = Json::parse(text, nullptr, false);
  ScanPlan plan;
  try {
    plan.parameters = json.at("scanned").get<std::vector<std::string>>();
    for (const Json& each : json.at("points")) {
      ASSAY_TRY(compare::Experiment experiment,
                compare::experiment_from_json(each.at("experiment")));
      plan.points.push_back({.name = each.at("name"),
                             .values = each.at("values").get<std::vector<std::string>>(),
                             .experiment = std::move(experiment)});
      // Names are used as folder names.
      if (plan.points.back().name.find('/') != std::string::npos ||
          plan.points.back().values.size() != plan.parameters.size()) {
        return base::fail(base::unfit_error(file, "is not a scan"));
      }
    }
  } catch (const Json::exception&) {
    return base::fail(base::unfit_error(file, "is not a scan"));
  }
  if (plan.points.empty()) return base::fail(base::unfit_error(file, "is not a scan"));
  return plan;
}

bool is_scan_folder(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / kScanFile, ignored);
}

base::Result<ScanResult> begin_scan(const Session& session, RequestedExperiments requested,
                                    const fs::path& directory) {
  if (is_scan_folder(directory)) {
    return base::fail(base::usage_error(directory, "already contains a scan",
                                        "continue it with --resume, or choose another folder"));
  }
  const ScanPlan plan{std::move(requested.parameters), std::move(requested.points)};
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return base::fail(base::system_error(directory, "cannot be created", error.value()));
  ASSAY_TRY_VOID(base::replace_file(directory / kScanFile, base::json_text(plan_json(plan))));
  return run_points(
      plan, directory,
      [&](const compare::ScanPoint& point, const fs::path& folder, const std::string& title) {
        return begin_experiment(session, point.experiment, folder, title);
      });
}

base::Result<ScanResult> resume_scan(const Session& session, const CompareOptions& options,
                                     const fs::path& directory) {
  ASSAY_TRY(const ScanPlan plan, read_scan_plan(directory));
  return run_points(plan, directory,
                    [&](const compare::ScanPoint& point, const fs::path& folder,
                        const std::string& title) -> ExecutedExperiment {
                      compare::Experiment changed = point.experiment;
                      ASSAY_TRY_VOID(change_experiment(options, changed));
                      std::error_code error;
                      if (!compare::has_begun(folder)) {
                        fs::current_path(changed.directory, error);
                        if (error) {
                          return base::fail(base::unfit_error(
                              changed.directory, "the working directory of the commands is gone"));
                        }
                        return begin_experiment(session, changed, folder, title);
                      }
                      if (!options.changes_rules()) {
                        if (auto finished = finished_result(folder)) return finished;
                      }
                      return resume_experiment(session, options, folder, title);
                    });
}

}  // namespace assay::cli
