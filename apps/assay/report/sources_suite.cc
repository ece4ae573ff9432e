// The result of a suite as a part of a page: from a file, a folder of `assay bench`, or by the
// suite's name the latest in the project.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "assay/project.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/effect.h"
#include "report/suite_part.h"
#include "store/location.h"
#include "suite/read_suite.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestSuite(std::int64_t{64} << 20U);

bool is_kept_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "run.json", ignored) && !fs::exists(folder / "runs.jsonl", ignored);
}

// The suite that a folder has a run of; empty if that cannot be read.
std::string suite_of(const fs::path& folder) {
  const auto text = base::read_file(folder / "run.json", kLargestSuite);
  if (!text) return {};
  const base::Json facts = base::Json::parse(*text, nullptr, false);
  const bool known = facts.is_object() && facts.contains("suite") && facts.at("suite").is_string();
  return known ? facts.at("suite").get<std::string>() : "";
}

report::PagePart suite_without_result(const fs::path& folder, const std::string& resume) {
  report::PagePart part{
      .kind = "suite",
      .title = suite_of(folder),
      .subtitle = folder.string(),
      .verdict = {report::Rating::kOpen, std::string(compare::kNoVerdict), "no result yet"}};
  if (part.title.empty()) part.title = folder.filename().string();
  report::add_section(part, {"Nothing to report yet",
                             {report::Note{"The suite has not finished; " + resume + "."}}});
  return part;
}

// The project's folder .assay, if there is a project.
std::optional<fs::path> project_folder() {
  const auto directory = working_directory();
  if (!directory) return std::nullopt;
  const auto project = store::find(*directory);
  if (!project || !*project) return std::nullopt;
  return (*project)->directory;
}

// Folders directly below this one.
std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator each(parent, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->is_directory(ignored)) folders.push_back(each->path());
  }
  return folders;
}

}  // namespace

bool is_suite(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return is_kept_run(path);
  return path.extension() == ".json" && fs::exists(path, ignored);
}

base::Result<report::PagePart> suite_in(const fs::path& path, IfEmpty if_empty) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  const fs::path file = folder ? path / "result.json" : path;
  if (folder && !fs::exists(file, ignored)) {
    const std::string resume =
        fmt::format("continue with assay bench --resume {}", base::shell_quoted(path.string()));
    if (if_empty == IfEmpty::kExplain) return suite_without_result(path, resume);
    return base::fail(
        base::unfit_error(path.string(), "contains a suite run without a result", resume));
  }
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestSuite));
  const base::Json json = base::Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return base::fail(
        base::usage_error(file.string(), "is not JSON", "name the result of a suite"));
  }
  return report::suite_part(json, file.string());
}

std::optional<fs::path> latest_result(const std::string& suite) {
  const auto project = project_folder();
  if (!project) return std::nullopt;
  std::error_code ignored;
  std::vector<fs::path> runs;
  for (const fs::path& folder : folders_in(*project / "bench")) {
    if (fs::exists(folder / "result.json", ignored)) runs.push_back(folder);
  }
  // Folders are named after the time at which they were made.
  std::sort(runs.rbegin(), runs.rend());
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const fs::path& run) { return suite_of(run) == suite; });
  return found == runs.end() ? std::nullopt : std::optional(*found);
}

std::vector<fs::path> latest_measurements() {
  const auto project = project_folder();
  if (!project) return {};
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  const auto add = [&](const fs::path& folder, const fs::path& file) {
    std::error_code error;
    const auto time = fs::last_write_time(file, error);
    if (!error) found.emplace_back(time, folder);
  };
  for (const fs::path& parent :
       {*project / "compare", *project / "bench", project->parent_path()}) {
    for (const fs::path& folder : folders_in(parent)) {
      std::error_code ignored;
      if (is_experiment(folder)) {
        add(folder, folder / "runs.jsonl");
      } else if (is_scan(folder)) {
        const bool ended = fs::exists(folder / "result.json", ignored);
        add(folder, folder / (ended ? "result.json" : "scan.json"));
      } else if (is_suite(folder)) {
        add(folder, folder / "run.json");
      }
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> folders;
  for (auto& [time, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

base::Error unknown_name_error(const std::string& name, base::Error no_run) {
  const std::vector<std::string> suites = suite::suite_names();
  if (std::find(suites.begin(), suites.end(), name) != suites.end()) {
    return base::usage_error(name,
                             "the project has no result of this suite, and no run of this name",
                             fmt::format("run assay bench {}, or name a result's folder", name));
  }
  std::error_code ignored;
  if (!fs::is_directory(name, ignored)) return no_run;
  if (::access(name.c_str(), R_OK | X_OK) != 0) {
    return base::system_error(name, "cannot be read", errno);
  }
  return base::usage_error(
      name, "is a folder without an experiment, a scan or a suite, and no run has this name",
      "folders of assay compare have runs.jsonl or scan.json, those of assay bench run.json");
}

}  // namespace assay::cli
