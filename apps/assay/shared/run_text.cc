#include "assay/shared/run_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/verb.h"
#include "lineage/graph/dag_view.h"

namespace assay::cli {

using base::printable;

std::string stage_text(const store::RunRecord& run) {
  if (run.stage == 0) return "";
  return fmt::format("{}{}", run.stage, run.superseded ? " (old)" : "");
}

std::string outcome_text(const store::RunRecord& run) {
  std::string text(store::name_of(run.status));
  if (run.status != store::RunStatus::kFailed) return text;
  if (run.signal) return fmt::format("{}: signal {}", text, *run.signal);
  return run.exit_code ? fmt::format("{}: {}", text, *run.exit_code) : text;
}

std::string took_text(const store::RunRecord& run) {
  if (run.status == store::RunStatus::kRunning) return "";
  std::string text = base::to_text(base::Seconds(run.duration_s));
  if (run.status != store::RunStatus::kInterrupted) return text;
  return run.duration_s > 0 ? "at least " + text : "unknown";
}

std::string log_command(const store::RunRecord& run) {
  std::string text;
  if (!run.name.empty()) text += printable(run.name) + ": ";
  text += cell_text(lineage::command_text(run));
  if (!run.labels.empty()) text += fmt::format("  [{}]", fmt::join(run.labels, ", "));
  return text;
}

}  // namespace assay::cli
