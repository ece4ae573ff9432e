// Carrying a plan out: a fresh copy of the source, the stages in order, and a verdict on every file
// they were recorded to leave. The original project is read, never written.
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
#include "lineage/reproduce/reproduce.h"

namespace assay::lineage {

enum class Verdict {
  kIdentical,
  kDifferent,
  kMissing,  // not made, or there before and not written
  kExtra,    // made, but not then; tells nothing against the others
  kUnknown,  // its content was not recorded
};
std::string_view to_text(Verdict verdict);

struct OutputVerdict {
  std::string path;  // in the original project
  Verdict verdict = Verdict::kUnknown;
  std::optional<hash::Digest> recorded, now;
};

struct StageVerdict {
  store::RunId run = 0;
  int exit_code = 0;
  double duration_s = 0;
  std::vector<OutputVerdict> outputs;
};

struct Reproduction {
  std::filesystem::path directory;  // the copy of the plan's root; it stays
  std::vector<StageVerdict> stages;
  std::string undecided;  // why it ended before the end; empty: it did not
  // kYes: all identical; kNo: something is different or missing; kInconclusive.
  [[nodiscard]] base::ExitCode exit_code() const;
};

struct RunPlanOptions {
  std::filesystem::path directory;  // new or empty; no path: one in the folder for temporary files
  std::map<std::string, std::string> environment;  // of this process, for what was redacted
  bool allow_outside = false;  // stages may write outside the copy what they wrote there before
  int output_fd = 2;           // where the stages' own output goes
  std::function<void(std::string_view line)> progress = [](std::string_view) {};
};

// An error only where nothing could be begun. A plan with obstacles is refused.
base::Result<Reproduction> run_plan(const Plan& plan, const RunPlanOptions& options);

base::Json to_json(const Reproduction& reproduction);

}  // namespace assay::lineage
