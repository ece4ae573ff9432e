// SourceCopy: the source code in a copy of the project, as it was when a stage began: the commit
// with the stored diff applied. Between stages it is brought to the next state; the stages' outputs
// are kept.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/path_map.h"
#include "base/process/environment.h"
#include "base/result.h"
#include "store/run.h"

namespace assay::lineage {

class SourceCopy {
 public:
  // `not_from_source` are the original's paths that the stages produce. The diff must not create
  // them, even if it contains them because they were untracked. A path that ends with a slash means
  // everything below that folder.
  SourceCopy(const base::PathMap& map, std::set<std::string> not_from_source,
             std::vector<std::string> environment);

  // Clones on the first call. `made` are the outputs of stages in the copy; they are not changed.
  base::Result<void> check_out(const store::Git& git, const std::set<std::string>& made);

 private:
  struct SourceVersion {
    std::string commit, diff;
  };
  base::Result<void> clone(const store::Git& git, const std::string& folder);
  base::Result<void> apply(const store::Git& git, const std::string& folder);
  base::Result<std::string> run(const std::string& folder,
                                const std::vector<std::string>& arguments,
                                const std::string& input = {}) const;

  const base::PathMap& map_;
  std::set<std::string> not_from_source_;
  base::Environment environment_;
  std::map<std::string, SourceVersion> at_;  // by the repository's original root
};

}  // namespace assay::lineage
