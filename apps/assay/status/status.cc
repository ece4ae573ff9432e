// assay status: the steps of the project, and which of them are stale.
#include <fmt/format.h>

#include "assay/project.h"
#include "assay/show/print_job.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/dag.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/disk_files.h"
#include "lineage/graph/staleness.h"
#include "store/job_reader.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> status(const Session& session) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::LiveSteps steps, lineage::load_live_steps(store));
  ASSAY_TRY(lineage::Files files, lineage::Files::open(store));
  const auto reasons = lineage::staleness(
      steps, [&](const std::string& path, const hash::Digest& content, std::int64_t size) {
        return files.check(path, content, size);
      });
  // Only speed is lost without it: another process may hold the lock.
  static_cast<void>(files.remember());

  const auto shown = [&](const std::string& path) {
    return base::printable(lineage::shown_path(path, directory));
  };
  base::Json list = base::Json::array();
  base::Table table({"step", "job", "state", "command", "why"});
  std::optional<std::int64_t> first_stale;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const store::Job& job = steps.jobs()[i];
    const bool stale = !reasons[i].empty();
    if (stale && !first_stale) first_stale = job.step;
    base::Json why = base::Json::array();
    base::Json told = base::Json::array();
    for (const lineage::Reason& reason : reasons[i]) {
      why.push_back(reason.text(shown));
      told.push_back({{"path", reason.path.empty() ? base::Json(nullptr) : base::Json(reason.path)},
                      {"step", reason.step == 0 ? base::Json(nullptr) : base::Json(reason.step)}});
    }
    std::string text = stale ? reasons[i].front().text(shown) : "";
    if (reasons[i].size() > 1) text += fmt::format(", and {} more", reasons[i].size() - 1);
    table.row({fmt::format("{}", job.step), fmt::format("{}", job.id), stale ? "stale" : "fresh",
               log_command(job), text});
    list.push_back({{"step", job.step},
                    {"job", job.id},
                    {"command", lineage::command_text(job)},
                    {"stale", stale},
                    {"why", std::move(why)},
                    {"reasons", std::move(told)}});
  }
  session.print_json(base::Json{{"stale", first_stale.has_value()}, {"steps", std::move(list)}});
  if (reasons.empty()) {
    session.print("no job has succeeded yet\n");
    session.next("assay run -- COMMAND");
    return base::ExitCode::kYes;
  }
  session.print(table);
  session.next(first_stale ? fmt::format("assay run @{}", *first_stale) : "assay dag");
  return first_stale ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace

Verb status_verb(const Session& session) {
  return {.name = "status",
          .description = "the project's steps; exits 1 if any is stale",
          .examples = {"assay status", "assay status --json"},
          .action = [&session] { return status(session); }};
}

}  // namespace assay::cli
