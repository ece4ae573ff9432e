// assay log: the recorded runs, newest first.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/show/print_run.h"
#include "assay/verbs.h"
#include "base/local_time.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/run_json.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

constexpr std::int64_t kDefaultCount = 20;

struct LogOptions {
  std::string count;
  bool all = false;
};

base::Result<base::ExitCode> log(const Session& session, const LogOptions& options) {
  std::int64_t limit = options.all ? -1 : kDefaultCount;
  if (!options.count.empty()) {
    ASSAY_TRY(limit, count_option("log", "-n", options.count));
  }
  if (limit == 0) {
    return base::fail(base::usage_error("log", "-n 0 shows nothing", "use --all for all runs"));
  }
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const auto runs, store::list_runs(store, {.limit = limit}));
  base::Json list = base::Json::array();
  base::Table table({"run", "when", "stage", "outcome", "took", "in", "out", "command"});
  table.align(1, base::Align::kLeft).align(2, base::Align::kRight);
  for (const store::RunRecord& run : runs) {
    if (session.json) list.push_back(lineage::run_head_json(run));
    table.row({fmt::format("{}", run.id), base::local_text(run.started_unix_ns), stage_text(run),
               outcome_text(run), took_text(run), base::grouped(run.input_count),
               base::grouped(run.output_count), log_command(run)});
  }
  session.print_json(base::Json{{"runs", std::move(list)}});
  if (runs.empty()) {
    session.print("no run has been recorded yet\n");
    session.next("assay run --help");
    return base::ExitCode::kYes;
  }
  session.print(table);
  session.next(fmt::format("assay show {}", runs.front().id));
  return base::ExitCode::kYes;
}

}  // namespace

Verb log_verb(const Session& session) {
  const auto given = std::make_shared<LogOptions>();
  return {.name = "log",
          .description = "list recorded runs, newest first",
          .examples = {"assay log", "assay log -n 5 --json"},
          .options = {{"-n,--count", "show the N newest; default: 20", &given->count, {}, "N"},
                      {"--all", "show all runs", &given->all}},
          .action = [&session, given] { return log(session, *given); }};
}

}  // namespace assay::cli
