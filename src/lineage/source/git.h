// The state of the git checkout a run starts in: commit, branch, remote, and the diff of the
// working tree against the commit, so that
//
//   git clone REMOTE x; cd x; git checkout COMMIT; git apply DIFF
//
// restores the files. Read before the command starts, because the command may change the tree.
// Neither the user's index nor the object store is written.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

struct GitLimits {
  std::int64_t untracked_file = std::int64_t{1} << 20;
  std::int64_t untracked_total = std::int64_t{64} << 20;
  std::size_t diff = std::size_t{256} << 20;
  std::chrono::milliseconds timeout{10'000};  // of each git command
};

struct GitState {
  std::optional<store::Git> git;  // none: not a checkout, or git failed
  std::string problem;            // why git failed; empty: it did not
};

// `environment` ("NAME=value") is git's: PATH and HOME matter, GIT_DIR and GIT_WORK_TREE only if no
// directory above has a .git. So inside a git hook, which sets them and GIT_INDEX_FILE, the state
// is that of `directory` as well.
GitState git_state(const std::filesystem::path& directory,
                   const std::vector<std::string>& environment, const GitLimits& limits = {});

}  // namespace assay::lineage
