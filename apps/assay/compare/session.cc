// Where and with what an experiment is run: what two sittings of it must have in common.
#include <fmt/format.h>
#include <unistd.h>

#include "assay/compare/options.h"
#include "base/clock.h"
#include "base/process/environment.h"
#include "base/version.h"
#include "lineage/source/git.h"
#include "machine/discover.h"

namespace assay::cli {
namespace {

// Only the commit is asked for: of files that are not in it, nothing is read.
constexpr lineage::GitLimits kCommitOnly = {
    .untracked_file = 0, .untracked_total = 0, .timeout = std::chrono::milliseconds(3000)};

std::string project_commit(const std::string& directory) {
  const lineage::GitState state =
      lineage::git_state(directory, base::Environment::from_current().entries(), kCommitOnly);
  if (!state.git || state.git->commit.empty()) return {};
  return state.git->commit + (state.git->dirty ? "-dirty" : "");
}

}  // namespace

compare::Sitting sitting_in(const std::string& directory, std::vector<std::string> preflight) {
  const machine::Machine here = machine::discover();
  const base::Version& version = base::version();
  return {.begun = base::utc_text(base::system_clock().wall_ns()),
          .host = here.hostname,
          .machine = machine::summary(here),
          .kernel = here.os.kernel,
          .driver = here.drivers.nvidia,
          .assay = fmt::format("{} {}", version.release, version.commit),
          .project = project_commit(directory),
          .preflight = std::move(preflight)};
}

}  // namespace assay::cli
