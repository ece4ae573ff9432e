// StageIsolation: the stages of a reproduction run in a mount namespace of their own, in which the
// original project cannot be written to. Environments that are used in place (environments.h) can
// be: what a stage writes there goes to a scratch folder and is forgotten.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

class StageIsolation {
 public:
  // Finds out what this machine allows, in a process of its own. `copy` may be below `project` and
  // stays writable. Nothing is tried, and nothing protected, unless `wanted`. Scratch folders that
  // killed processes left are removed.
  StageIsolation(std::string project, std::string copy, const std::set<std::string>& environments,
                 bool wanted);
  StageIsolation(const StageIsolation&) = delete;
  StageIsolation& operator=(const StageIsolation&) = delete;
  ~StageIsolation();  // removes the scratch folder

  // Without it, stages can write to everything that this user can.
  [[nodiscard]] bool protects() const { return protects_; }
  // Whether stages can write into environments, without changing them.
  [[nodiscard]] bool layers() const { return layers_; }

  // The result of `act`, at most 255, called in a process of its own. An error if it was not called
  // to its end.
  [[nodiscard]] base::Result<int> run(const std::function<int()>& act) const;

 private:
  // The mounts, in a process that is to have them; false: errno.
  [[nodiscard]] bool enter(bool layered) const;
  [[nodiscard]] bool enters(bool layered) const;

  std::string project_, copy_;
  std::vector<std::string> environments_;
  std::filesystem::path scratch_;  // with upper/N and work/N for environment N
  base::UniqueFd lock_;            // on it: it is in use
  bool protects_ = false;
  bool layers_ = false;
};

}  // namespace assay::lineage
