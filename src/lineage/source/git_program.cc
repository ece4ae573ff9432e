#include "lineage/source/git_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace assay::lineage {
namespace {

// Variables that change what git prints or does for the caller's convenience. Those that say where
// the repository is (GIT_DIR, GIT_WORK_TREE, …) stay.
constexpr std::array<std::string_view, 12> kDropped = {"GIT_TRACE",
                                                       "GIT_DIFF_OPTS",
                                                       "GIT_EXTERNAL_DIFF",
                                                       "GIT_PAGER",
                                                       "LC_ALL",
                                                       "GIT_OPTIONAL_LOCKS",
                                                       "LANGUAGE",
                                                       "GIT_LITERAL_PATHSPECS",
                                                       "GIT_ICASE_PATHSPECS",
                                                       "GIT_GLOB_PATHSPECS",
                                                       "GIT_NOGLOB_PATHSPECS",
                                                       "GIT_ALLOW_PROTOCOL"};

bool is_dropped(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name.starts_with("GIT_TRACE") || name.starts_with("ASSAY_") || name == "LD_PRELOAD" ||
         std::find(kDropped.begin(), kDropped.end(), name) != kDropped.end();
}

// A file-system monitor would leave a daemon running; a split index would be written beside the
// user's.
constexpr std::array<std::string_view, 12> kSettings = {"core.fsmonitor=false",
                                                        "core.splitIndex=false",
                                                        "core.safecrlf=false",
                                                        "core.quotePath=true",
                                                        "core.pager=cat",
                                                        "diff.noprefix=false",
                                                        "diff.orderFile=/dev/null",
                                                        "diff.mnemonicPrefix=false",
                                                        "diff.suppressBlankEmpty=false",
                                                        "diff.interHunkContext=0",
                                                        "advice.addEmbeddedRepo=false",
                                                        "core.whitespace="};

}  // namespace

GitProgram::GitProgram(std::filesystem::path directory, const std::vector<std::string>& environment,
                       const GitLimits& limits)
    : directory_(std::move(directory)), limits_(limits) {
  environment_.reserve(environment.size() + 8);
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(environment_),
               [](const std::string& entry) { return !is_dropped(entry); });
  for (const char* entry :
       {"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1",
        "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"}) {
    environment_.emplace_back(entry);
  }
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
