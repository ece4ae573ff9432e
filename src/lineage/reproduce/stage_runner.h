// StageRunner: runs the stages of a plan in a copy of the project, one after the other, and
// compares their outputs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/path_map.h"
#include "base/result.h"
#include "lineage/record/redirects.h"
#include "lineage/reproduce/isolation.h"
#include "lineage/reproduce/run_plan.h"
#include "lineage/reproduce/source_copy.h"

namespace assay::lineage {

class StageRunner {
 public:
  // Plan and options must outlive it.
  StageRunner(const ReproductionPlan& plan, const RunPlanOptions& options,
              const std::filesystem::path& folder);

  // Whether stages cannot write to the original project.
  [[nodiscard]] bool protects_project() const { return isolation_.protects(); }
  // How stages get the environments, in words: "is used in place: …".
  [[nodiscard]] std::string environment_text() const;

  // Runs the stage and, if its exit code is the recorded one, compares its outputs. An error if the
  // stage could not be started as recorded.
  base::Result<StageResult> run(const PlannedStage& stage);

 private:
  struct Stamp {
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Files = std::map<std::string, Stamp>;

  static std::optional<Stamp> stamp_of(const std::filesystem::path& path);
  static Files files_below(const std::filesystem::path& root);
  static OutputComparison compare_output(const store::Output& output, const std::string& path,
                                         const Files& before);
  base::Result<void> place_inputs(const PlannedStage& stage);
  void place_links(const PlannedStage& stage);
  base::Result<void> place_environments();
  void prepare_outputs(const store::RunRecord& run);
  [[nodiscard]] std::vector<std::string> environment_of(const store::RunRecord& run) const;
  void compare(const PlannedStage& stage, const Files& before, StageResult& result);
  [[nodiscard]] std::vector<Redirect> redirects_of_copy(const store::RunRecord& run) const;

  const RunPlanOptions& options_;
  const std::set<std::string>& environments_;
  base::PathMap map_;
  StageIsolation isolation_;
  SourceCopy source_;
  std::set<std::string> made_;  // in the copy
};

}  // namespace assay::lineage
