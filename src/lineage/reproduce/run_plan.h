// Executes a reproduction plan: makes a fresh copy of the source, runs the stages in order, and
// compares every output. The original project is only read; where the machine allows it, stages are
// prevented from writing to it (isolation.h).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "lineage/reproduce/plan.h"

namespace assay::lineage {

enum class OutputMatch {
  kIdentical,
  kDifferent,
  kMissing,  // not written
  kExtra,    // written now but not in the recorded run; does not affect the verdict
  kUnknown,  // its content was not recorded
};
std::string_view to_text(OutputMatch match);

struct OutputComparison {
  std::string path;  // in the original project
  OutputMatch match = OutputMatch::kUnknown;
  std::optional<hash::Digest> recorded, now;
};

struct StageResult {
  store::RunId run = 0;
  int exit_code = 0;
  double duration_s = 0;
  std::vector<OutputComparison> outputs;
};

struct Reproduction {
  std::filesystem::path directory;  // the copy of the plan's root; no path: there is none
  std::vector<StageResult> stages;
  // The requested artifact, among the outputs of the stage that makes it; none: that stage did not
  // finish, or all outputs were requested.
  std::optional<OutputComparison> artifact;
  std::string undecided;  // why the reproduction was not completed; empty: it was
  // For the artifact, or without one for all outputs: kYes if identical, kNo if different or
  // missing, else kInconclusive.
  [[nodiscard]] base::ExitCode exit_code() const;
};

struct RunPlanOptions {
  std::filesystem::path directory;                 // new or empty; no path: a temporary folder
  std::map<std::string, std::string> environment;  // of this process, for redacted variables
  bool allow_outside = false;  // stages may write their outputs outside the copy
  // Stages run in their own mount namespace (isolation.h) where the machine allows it.
  bool own_mounts = true;
  int output_fd = 2;  // for the stages' own output
  std::function<void(std::string_view line)> progress = [](std::string_view) {};
};

// If the artifact is a folder: each of its files as the last stage that writes it left it; kUnknown
// also if it was not compared for any stage.
std::vector<OutputComparison> compared_files(const ReproductionPlan& plan,
                                             const std::vector<StageResult>& stages);

// An error only if nothing could be started. A plan with obstacles is not run.
base::Result<Reproduction> run_plan(const ReproductionPlan& plan, const RunPlanOptions& options);

// Removes the copy if the stages made exactly what was recorded: then there is nothing in it to
// look at. Returns whether it did.
bool remove_if_identical(Reproduction& done);

base::Json to_json(const Reproduction& reproduction);

}  // namespace assay::lineage
