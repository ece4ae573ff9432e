// Runs git so that its output depends on the repository alone: no pager, no external diff programs,
// no locks, no network, no translations.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process/capture.h"
#include "base/result.h"
#include "lineage/source/git.h"

namespace assay::lineage {

class GitProgram {
 public:
  GitProgram(std::filesystem::path directory, const std::vector<std::string>& environment,
             const GitLimits& limits);

  // `arguments` follow "git" and the fixed settings.
  [[nodiscard]] base::Result<base::CapturedProcess> start(const std::vector<std::string>& arguments,
                                                          std::string input = {}) const;
  [[nodiscard]] base::Result<base::Captured> run(const std::vector<std::string>& arguments,
                                                 std::string input = {}) const;
  // "NAME=value" on top of the environment.
  void set(const std::string& entry) { environment_.push_back(entry); }
  void move_to(std::filesystem::path directory) { directory_ = std::move(directory); }

 private:
  std::filesystem::path directory_;
  std::vector<std::string> environment_;
  GitLimits limits_;
};

// Why git failed, as one line.
std::string failure_text(const base::Captured& result);

}  // namespace assay::lineage
