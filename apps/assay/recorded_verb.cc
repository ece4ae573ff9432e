#include "assay/recorded_verb.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/process/proc.h"
#include "base/process/program.h"
#include "lineage/record/run.h"
#include "store/location.h"
#include "store/this_run.h"

namespace assay::cli {
namespace {

// Set in the environment of the restarted verb, even if it could not be recorded, and in its
// recorded environment, so that `assay reproduce` repeats the verb and not its recording.
constexpr const char* kStartedAgain = "ASSAY_VERB_STARTED_AGAIN";

// "assay" if that name finds this program, so that the recorded command also works after an
// upgrade.
std::string own_name() {
  const std::filesystem::path own = base::own_program();
  std::error_code error;
  const auto found = base::find_program("assay", base::current_search_path());
  if (found && std::filesystem::equivalent(*found, own, error) && !error) return "assay";
  return own.string();
}

// These verbs do not create a project: they are also used in folders where nothing is recorded.
bool in_project() {
  std::error_code gone;
  const std::filesystem::path directory = std::filesystem::current_path(gone);
  const auto location = store::find(directory);
  return !gone && location && location->has_value();
}

}  // namespace

Verb recorded(const Session& session, Verb verb, std::function<bool()> makes_files,
              AboutRuns about_runs) {
  verb.action = [&session, about_runs, action = std::move(verb.action),
                 makes_files = std::move(makes_files)]() -> base::Result<base::ExitCode> {
    lineage::RunRequest request;
    request.drop_misuse = true;
    request.about_runs = about_runs == AboutRuns::kYes;
    request.command = base::own_arguments();
    if (std::getenv(kStartedAgain) != nullptr || (makes_files && !makes_files()) || !in_project() ||
        store::this_run() || request.command.empty() || base::own_program().empty()) {
      return action();
    }
    request.command.front() = own_name();
    ::setenv(kStartedAgain, "1", 1);
    if (!session.quiet && ::isatty(STDERR_FILENO) == 1)
      request.summary = lineage::SummaryFormat::kLine;
    ASSAY_TRY(const collect::KeeperResult result, lineage::run_command(request));
    collect::exit_with_status(result);
  };
  return verb;
}

}  // namespace assay::cli
