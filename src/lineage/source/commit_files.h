// CommitFiles: which of a run's files are in git, as part of its commit or of its stored diff.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class CommitFiles {
 public:
  // For running git.
  explicit CommitFiles(const std::map<std::string, std::string>& environment);

  // Whether the commit or the diff has the file.
  bool has(const store::Git& git, const std::string& path);
  // Whether the commit has it, even if the diff changes it.
  bool in_commit(const store::Git& git, const std::string& path);
  // Whether the commit has it and the diff does not change it: its content is the commit's.
  bool has_unchanged(const store::Git& git, const std::string& path);

 private:
  // Relative to the repository; empty if the commit does not exist here.
  const std::set<std::string>& files_of(const store::Git& git);

  std::vector<std::string> environment_;
  std::map<std::string, std::set<std::string>> files_;
};

}  // namespace assay::lineage
