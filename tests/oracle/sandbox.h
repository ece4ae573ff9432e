// Where a case runs: a pristine tree, and a copy of it for each observer.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "oracle/cases.h"
#include "support/process.h"

namespace assay::oracle {

inline constexpr const char* kPrograms = ORACLE_PROGRAMS;  // those of the corpus

class Sandbox {
 public:
  // The case's $P is the folder `programs`; all trees are below `parent`.
  explicit Sandbox(const Case& which, std::string programs = kPrograms,
                   const std::filesystem::path& parent = std::filesystem::temp_directory_path());

  // A fresh copy of the pristine tree. All copies have paths of the same length.
  std::filesystem::path copy(std::string name);
  // Runs the case in a copy with $RUN being `watcher`.
  support::ProcessResult run(const std::filesystem::path& tree,
                             const std::vector<std::string>& watcher);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path pristine() const { return folder_ / "pristine"; }
  [[nodiscard]] const std::string& failure() const { return failure_; }  // of the setup

 private:
  [[nodiscard]] support::ProcessResult bash(const std::string& text,
                                            const std::filesystem::path& where) const;

  const Case& case_;
  std::string programs_;
  base::testing::TempDir temporary_;
  std::filesystem::path folder_;
  std::string failure_;
};

// Digests of files as b3sum gives them; all must be there.
std::map<std::string, std::string> b3sum(const std::filesystem::path& root,
                                         const std::vector<std::string>& paths);

// Why this machine cannot run the case; empty if it can.
std::string unavailable(const Case& which);

std::string quoted(const std::vector<std::string>& arguments);

}  // namespace assay::oracle
