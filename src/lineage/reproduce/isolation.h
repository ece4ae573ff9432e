// StageIsolation: runs the stages of a reproduction in their own mount namespace, in which the
// original project is read-only. Environments that are used in place (environments.h) are overlays:
// what a stage writes there goes to a scratch folder and is discarded.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/path_map.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

class StageIsolation {
 public:
  // Tests in a child process what this machine allows. `copy` may be below `project` and stays
  // writable. Without `wanted`, nothing is tested or protected. Removes scratch folders of killed
  // processes.
  StageIsolation(std::string project, std::string copy, const std::set<std::string>& environments,
                 bool wanted);
  StageIsolation(const StageIsolation&) = delete;
  StageIsolation& operator=(const StageIsolation&) = delete;
  ~StageIsolation();  // removes the scratch folder

  // Whether the project is protected. If not, stages can write wherever this user can.
  [[nodiscard]] bool protects() const { return protects_; }
  // Whether environments are overlays, which stages can write to without changing them.
  [[nodiscard]] bool layers() const { return layers_; }

  // Calls `act` in a child process inside the namespace and returns its result, at most 255. An
  // error if it did not return.
  [[nodiscard]] base::Result<int> run(const std::function<int()>& act) const;

 private:
  // Sets up the mounts in the calling process; false: see errno.
  [[nodiscard]] bool enter(bool layered) const;
  [[nodiscard]] bool enters(bool layered) const;

  std::string project_, copy_;
  std::vector<std::string> environments_;
  std::filesystem::path scratch_;  // with upper/N and work/N for environment N
  base::UniqueFd lock_;            // on the scratch folder: marks it as in use
  bool protects_ = false;
  bool layers_ = false;
};
// Where stages cannot be prevented from writing to the original: copies everything below an
// environment (environments.h) to its place in the copy of the project, by reflink where the file
// system supports that. In scripts in its bin/, the original's path is replaced by the copy's,
// because they find their interpreter by it.
base::Result<void> copy_environment(const std::string& environment, const base::PathMap& map);

}  // namespace assay::lineage
