#include "lineage/source/git_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace assay::lineage {
namespace {

// The variables of `git rev-parse --local-env-vars` except those with configuration, which git may
// need to accept the repository (safe.directory).
constexpr std::array<std::string_view, 14> kRepositoryVariables = {
    "GIT_DIR",        "GIT_WORK_TREE",        "GIT_IMPLICIT_WORK_TREE",
    "GIT_COMMON_DIR", "GIT_INDEX_FILE",       "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",     "GIT_SHALLOW_FILE",     "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS",
    "GIT_CONFIG",     "GIT_QUARANTINE_PATH"};

// Variables that change what git prints or does for the caller's convenience.
constexpr std::array<std::string_view, 8> kDropped = {
    "GIT_DIFF_OPTS",      "GIT_EXTERNAL_DIFF",    "GIT_PAGER", "LANGUAGE", "GIT_ICASE_PATHSPECS",
    "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "LD_PRELOAD"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kVariables = {
    {{"GIT_OPTIONAL_LOCKS", "0"},
     {"LC_ALL", "C"},
     {"GIT_TERMINAL_PROMPT", "0"},
     {"GIT_LITERAL_PATHSPECS", "1"},
     {"GIT_ALLOW_PROTOCOL", "none"},
     {"GIT_NO_LAZY_FETCH", "1"}}};

bool is_dropped(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name.starts_with("GIT_TRACE") || name.starts_with("ASSAY_") ||
         std::find(kDropped.begin(), kDropped.end(), name) != kDropped.end();
}

// A file-system monitor would leave a daemon running; a split index would be written beside the
// user's; `git diff` would write the times of files it compared to the user's index, also without
// optional locks.
constexpr std::array<std::string_view, 13> kSettings = {"core.fsmonitor=false",
                                                        "core.splitIndex=false",
                                                        "core.safecrlf=false",
                                                        "core.quotePath=true",
                                                        "core.pager=cat",
                                                        "diff.autoRefreshIndex=false",
                                                        "diff.noprefix=false",
                                                        "diff.orderFile=/dev/null",
                                                        "diff.mnemonicPrefix=false",
                                                        "diff.suppressBlankEmpty=false",
                                                        "diff.interHunkContext=0",
                                                        "advice.addEmbeddedRepo=false",
                                                        "core.whitespace="};

}  // namespace

base::Environment without_git_repository(base::Environment environment) {
  for (const std::string_view name : kRepositoryVariables) environment.unset(name);
  return environment;
}

GitProgram::GitProgram(std::filesystem::path directory, const std::vector<std::string>& environment,
                       const GitLimits& limits)
    : directory_(std::move(directory)), limits_(limits) {
  std::vector<std::string> entries;
  entries.reserve(environment.size() + kVariables.size());
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(entries),
               [](const std::string& entry) { return !is_dropped(entry); });
  environment_ = without_git_repository(std::move(entries));
  for (const auto& [name, value] : kVariables) environment_.set(name, value);
}

base::Result<base::CapturedProcess> GitProgram::start(const std::vector<std::string>& arguments,
                                                      std::string input) const {
  base::CaptureOptions options{.arguments = {"git", "--no-pager"},
                               .environment = environment_,
                               .directory = directory_,
                               .input = std::move(input),
                               .timeout = limits_.timeout,
                               .output_limit = limits_.diff};
  for (const std::string_view setting : kSettings) {
    options.arguments.emplace_back("-c");
    options.arguments.emplace_back(setting);
  }
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  return base::CapturedProcess::start(std::move(options));
}

base::Result<base::Captured> GitProgram::run(const std::vector<std::string>& arguments,
                                             std::string input) const {
  ASSAY_TRY(base::CapturedProcess child, start(arguments, std::move(input)));
  return child.finish();
}

std::string failure_text(const base::Captured& result) {
  if (result.timed_out) return "git took too long";
  if (result.too_long) return "too large";
  if (result.errors.find("dubious ownership") != std::string::npos) {
    return "git refuses a repository that another user owns; allow it with "
           "'git config --global --add safe.directory'";
  }
  std::string_view line = result.errors;
  line = line.substr(0, line.find('\n'));
  return line.empty() ? fmt::format("git ended with {}", result.exit_code)
                      : base::printable(base::trim(line));
}

}  // namespace assay::lineage
