#include "store/run.h"

#include <algorithm>

#include "base/check.h"

namespace assay::store {

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kDone:
      return "done";
    case RunStatus::kFailed:
      return "failed";
    case RunStatus::kInterrupted:
      return "interrupted";
  }
  ASSAY_CHECK(false, "every status has a name");
}

std::string_view name_of(OutputStatus status) {
  switch (status) {
    case OutputStatus::kCreated:
      return "created";
    case OutputStatus::kModified:
      return "modified";
    case OutputStatus::kRenamed:
      return "renamed";
    case OutputStatus::kLinked:
      return "linked";
    case OutputStatus::kDeleted:
      return "deleted";
  }
  ASSAY_CHECK(false, "every status has a name");
}

namespace {

constexpr std::string_view kStdin = "stdin";

}  // namespace

Missed missed_stdin() {
  return {std::string(kStdin),
          "standard input was a pipe or a socket; what came through it was not recorded"};
}

Missed unknown_stdin() {
  return {
      "stdin-unknown",
      "standard input was a pipe, and whether it was read is not known: this user has no inotify "
      "instance left (fs.inotify.max_user_instances)"};
}

bool read_a_pipe(const RunRecord& run) {
  return std::any_of(run.missed.begin(), run.missed.end(),
                     [](const Missed& missed) { return missed.what == kStdin; });
}

bool is_about_runs(const RunRecord& run) {
  return std::find(run.options.begin(), run.options.end(), kAboutRuns) != run.options.end();
}

}  // namespace assay::store
