// Runs git so that its output depends on the repository alone: no pager, no external diff programs,
// no locks, no network, no translations.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/capture.h"
#include "base/process/environment.h"
#include "base/result.h"
#include "lineage/source/git.h"

namespace assay::lineage {

// The environment without the variables that select a repository or a part of one (GIT_DIR,
// GIT_INDEX_FILE, …), which git sets in hooks. Without them git uses the repository of its working
// directory.
base::Environment without_git_repository(base::Environment environment);

// Uses the repository that `directory` is in, whatever `environment` names.
class GitProgram {
 public:
  GitProgram(std::filesystem::path directory, const std::vector<std::string>& environment,
             const GitLimits& limits);

  // `arguments` follow "git" and the fixed settings.
  [[nodiscard]] base::Result<base::CapturedProcess> start(const std::vector<std::string>& arguments,
                                                          std::string input = {}) const;
  [[nodiscard]] base::Result<base::Captured> run(const std::vector<std::string>& arguments,
                                                 std::string input = {}) const;
  // Sets a variable of git's environment.
  void set(std::string_view name, std::string_view value) { environment_.set(name, value); }
  void move_to(std::filesystem::path directory) { directory_ = std::move(directory); }

 private:
  std::filesystem::path directory_;
  base::Environment environment_;
  GitLimits limits_;
};

// Why git failed, as one line.
std::string failure_text(const base::Captured& result);

}  // namespace assay::lineage
