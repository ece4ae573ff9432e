// assay status: the project's stages, and which of them are stale.
#include <fmt/format.h>

#include "assay/project.h"
#include "assay/show/print_run.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/stage_states.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> status(const Session& session) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::StageStates states, lineage::load_stage_states(store));
  const auto& [stages, reasons, edited] = states;

  const auto shown = [&](const std::string& path) {
    return base::printable(lineage::shown_path(path, directory));
  };
  base::Json list = base::Json::array();
  base::Table table({"stage", "run", "state", "command", "why"});
  std::optional<std::int64_t> first_stale;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const store::RunRecord& run = stages.runs()[i];
    const bool stale = !reasons[i].empty();
    if (stale && !first_stale) first_stale = run.stage;
    base::Json why = base::Json::array();
    base::Json reason_list = base::Json::array();
    for (const lineage::Reason& reason : reasons[i]) {
      why.push_back(reason.text(shown));
      reason_list.push_back(
          {{"path", reason.path.empty() ? base::Json(nullptr) : base::Json(reason.path)},
           {"stage", reason.stage == 0 ? base::Json(nullptr) : base::Json(reason.stage)}});
    }
    std::string text = stale ? reasons[i].front().text(shown) : "";
    if (reasons[i].size() > 1) text += fmt::format(", and {} more", reasons[i].size() - 1);
    table.row({fmt::format("{}", run.stage), fmt::format("{}", run.id), stale ? "stale" : "fresh",
               log_command(run), text});
    list.push_back({{"stage", run.stage},
                    {"run", run.id},
                    {"command", lineage::recorded_command_text(run)},
                    {"stale", stale},
                    {"why", std::move(why)},
                    {"reasons", std::move(reason_list)}});
  }
  session.print_json(base::Json{{"stale", first_stale.has_value()}, {"stages", std::move(list)}});
  if (reasons.empty()) {
    session.print("no run has succeeded yet\n");
    session.next("assay run -- COMMAND");
    return base::ExitCode::kYes;
  }
  session.print(table);
  for (const std::string& path : edited) {
    session.print(
        fmt::format("{}: changed by hand; running its stage again overwrites it\n", shown(path)));
  }
  session.next(first_stale ? "assay refresh" : "assay dag");
  return first_stale ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace

Verb status_verb(const Session& session) {
  return {.name = "status",
          .description = "list the project's stages; exits 1 if any is stale",
          .examples = {"assay status", "assay status --json"},
          .action = [&session] { return status(session); }};
}

}  // namespace assay::cli
