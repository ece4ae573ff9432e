// `assay refresh`: runs the stale stages of a project again, each as `assay run @N`, producers
// before consumers, independent ones at the same time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lineage/refresh/plan_refresh.h"
#include "store/store.h"

namespace assay::lineage {

struct RefreshRequest {
  std::vector<std::int64_t> targets;
  std::size_t jobs = 1;  // stages at the same time
  EditedOutputs edited = EditedOutputs::kKeep;
  bool keep_going = false;  // after a failure, run the stages that do not depend on it
  std::filesystem::path program;
  std::function<void(std::string_view text)> output;    // gets what stages print
  std::function<void(std::string_view line)> progress;  // gets a line when a stage begins or ends
};

enum class StageOutcome {
  kDone,
  kFailed,
  kUnneeded,  // its inputs turned out unchanged: fresh without being run
  kBlocked,   // not run because a stage that it depends on was not done
  kNotRun,    // not run because another stage failed, or because of an interrupt
};
std::string_view to_text(StageOutcome outcome);

struct RefreshedStage {
  std::int64_t stage = 0;
  std::string command;
  StageOutcome outcome = StageOutcome::kNotRun;
  // The stage's current run now; if it failed, the run that failed (0: it was not recorded).
  store::RunId run = 0;
  int exit_code = 0;          // if it was run
  std::optional<int> signal;  // that ended its command
  double duration_s = 0;
  std::string why;  // if it was not run
};

struct RefreshReport {
  std::vector<RefreshedStage> stages;  // in the order in which they began or were skipped
  std::vector<PlannedRefresh> stale;   // what the same refresh would run now
  std::vector<std::int64_t> replaced;  // not stale, but another stage has replaced an output
  std::vector<std::int64_t> unsure;    // not stale, but not known to be fresh
  bool no_stages = false;              // no run has succeeded yet
  int interrupted_by = 0;              // a signal, or 0
};

// How a stage that was run failed, as `assay log` says it: "2", "signal 9".
std::string failure_text(const RefreshedStage& stage);

// An error if nothing could be run. Only one refresh runs at a time in a project.
base::Result<RefreshReport> refresh(store::Store& store, const RefreshRequest& request);

}  // namespace assay::lineage
