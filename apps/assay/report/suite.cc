// The result of a suite as a report needs it: a file, a folder of `assay bench`, or by its name the
// latest in the project.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "assay/project.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "base/text.h"
#include "report/suite_part.h"
#include "store/location.h"
#include "suite/catalogue.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestSuite(std::int64_t{64} << 20U);

bool is_kept_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "run.json", ignored) && !fs::exists(folder / "runs.jsonl", ignored);
}

bool is_run_of(const fs::path& folder, const std::string& suite) {
  const auto text = base::read_file(folder / "run.json", kLargestSuite);
  if (!text) return false;
  const base::Json facts = base::Json::parse(*text, nullptr, false);
  return facts.is_object() && facts.contains("suite") && facts.at("suite") == suite;
}

}  // namespace

bool is_suite(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return is_kept_run(path);
  return path.extension() == ".json" && fs::exists(path, ignored);
}

base::Result<report::Part> suite_in(const fs::path& path) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  const fs::path file = folder ? path / "result.json" : path;
  if (folder && !fs::exists(file, ignored)) {
    return base::fail(base::unfit_error(
        path.string(), "has a run of a suite without a result",
        fmt::format("go on with assay bench --resume {}", base::shell_quoted(path.string()))));
  }
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestSuite));
  const base::Json json = base::Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return base::fail(base::usage_error(file.string(), "is no JSON", "name the result of a suite"));
  }
  return report::suite_part(json, file.string());
}

std::optional<fs::path> latest_result(const std::string& suite) {
  const auto directory = working_directory();
  if (!directory) return std::nullopt;
  const auto project = store::find(*directory);
  if (!project || !*project) return std::nullopt;
  std::error_code error;
  std::vector<fs::path> runs;
  for (fs::directory_iterator each((*project)->directory / "bench", error), end;
       !error && each != end; each.increment(error)) {
    if (fs::exists(each->path() / "result.json", error)) runs.push_back(each->path());
  }
  // Folders are called by the time at which they were made.
  std::sort(runs.rbegin(), runs.rend());
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const fs::path& run) { return is_run_of(run, suite); });
  return found == runs.end() ? std::nullopt : std::optional(*found);
}

base::Error nothing_called(const std::string& word, base::Error no_run) {
  const std::vector<std::string> suites = suite::suite_names();
  if (std::find(suites.begin(), suites.end(), word) != suites.end()) {
    return base::usage_error(word,
                             "no run of this suite is in the project, and no run is called so",
                             fmt::format("assay bench {}, or name the folder of a run", word));
  }
  std::error_code ignored;
  if (!fs::is_directory(word, ignored)) return no_run;
  if (::access(word.c_str(), R_OK | X_OK) != 0) {
    return base::system_error(word, "cannot be read", errno);
  }
  return base::usage_error(
      word, "is a folder without an experiment or a suite, and no run is called so",
      "a folder that assay compare wrote has runs.jsonl, one of assay bench run.json");
}

}  // namespace assay::cli
