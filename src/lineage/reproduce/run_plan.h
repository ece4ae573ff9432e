// Carries out a reproduction plan: a fresh copy of the source, the stages in order, and a
// comparison of every output. The original project is only read; stages cannot write to it where
// the machine allows that (isolation.h).
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
  kExtra,    // written now but not then; does not affect the verdict
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
  std::filesystem::path directory;  // the copy of the plan's root; it is not removed
  std::vector<StageResult> stages;
  // The artifact that was asked for, among the outputs of the stage that makes it; none: that stage
  // was not run to its end, or the plan is for all outputs.
  std::optional<OutputComparison> artifact;
  std::string undecided;  // why it was not completed; empty: it was
  // By the artifact: kYes: identical; kNo: different or missing; kInconclusive. Without one, by all
  // outputs.
  [[nodiscard]] base::ExitCode exit_code() const;
};

struct RunPlanOptions {
  std::filesystem::path directory;                 // new or empty; no path: a temporary folder
  std::map<std::string, std::string> environment;  // of this process, for redacted variables
  bool allow_outside = false;  // stages may write their outputs outside the copy
  // Stages have mounts of their own (isolation.h) where the machine allows it.
  bool own_mounts = true;
  int output_fd = 2;  // for the stages' own output
  std::function<void(std::string_view line)> progress = [](std::string_view) {};
};

// Each file of an artifact that is a folder, as the last stage that writes it left it; kUnknown
// also if no stage's was compared.
std::vector<OutputComparison> compared_files(const ReproductionPlan& plan,
                                             const std::vector<StageResult>& stages);

// An error only if nothing could be started. A plan with obstacles is not run.
base::Result<Reproduction> run_plan(const ReproductionPlan& plan, const RunPlanOptions& options);

base::Json to_json(const Reproduction& reproduction);

}  // namespace assay::lineage
