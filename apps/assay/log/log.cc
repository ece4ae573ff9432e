// assay log: the recorded runs, newest first.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "assay/project.h"
#include "assay/shared/reported_values.h"
#include "assay/shared/run_text.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/run_json.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

constexpr std::int64_t kDefaultCount = 20;

struct LogOptions {
  std::string count;
  bool all = false;
  std::vector<std::string> columns;  // each a name, or several with commas between
};

// "a,b" "c" -> a b c
base::Result<std::vector<std::string>> column_names(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& list : given) {
    std::size_t from = 0;
    while (from <= list.size()) {
      const std::size_t comma = std::min(list.find(',', from), list.size());
      const std::string name(base::trim(list.substr(from, comma - from)));
      if (name.empty()) {
        return base::fail(
            base::usage_error("log --columns", "a name is empty", "for example --columns lr,loss"));
      }
      names.push_back(name);
      from = comma + 1;
    }
  }
  return names;
}

// A name that no run has is misspelt.
base::Result<void> check_columns(const std::vector<std::string>& names,
                                 const std::set<std::string>& known) {
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    const std::vector<std::string> list(known.begin(), known.end());
    std::string hint = base::suggestion(name, list);
    if (hint.empty()) {
      hint = list.empty() ? "see `assay log-metric`"
                          : fmt::format("there are {}", fmt::join(list, ", "));
    }
    return base::fail(base::usage_error(fmt::format("log --columns {}", name),
                                        "none of these runs has a parameter or metric of this name",
                                        hint));
  }
  return {};
}

base::Result<base::ExitCode> log(const Session& session, const LogOptions& options) {
  std::int64_t limit = options.all ? -1 : kDefaultCount;
  if (!options.count.empty()) {
    ASSAY_TRY(limit, number_option<std::int64_t>("log -n", options.count, 1,
                                                 std::numeric_limits<std::int64_t>::max(),
                                                 "use --all for all runs"));
  }
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const auto runs, store::list_runs(store, {.limit = limit}));
  ASSAY_TRY(const std::vector<std::string> columns, column_names(options.columns));
  std::vector<lineage::ReportedValues> reported(runs.size());
  std::set<std::string> known;
  for (std::size_t i = 0; i < runs.size() && !columns.empty(); ++i) {
    ASSAY_TRY(reported[i], reported_values(store, runs[i].id));
    for (const auto& [name, value] : reported[i].parameters) known.insert(name);
    for (const auto& [name, value] : reported[i].metrics) known.insert(name);
  }
  if (!runs.empty()) ASSAY_TRY_VOID(check_columns(columns, known));
  base::Json list = base::Json::array();
  std::vector<std::string> head = {"run", "when", "stage", "outcome", "took", "in", "out"};
  for (const std::string& name : columns) head.push_back(base::printable(name));
  head.emplace_back("command");
  base::Table table(head);
  table.align(1, base::Align::kLeft).align(2, base::Align::kRight);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const store::RunRecord& run = runs[i];
    std::vector<std::string> row = {fmt::format("{}", run.id),
                                    base::local_text(run.started_unix_ns),
                                    stage_text(run),
                                    outcome_text(run),
                                    took_text(run),
                                    base::grouped(run.input_count),
                                    base::grouped(run.output_count)};
    base::Json values = base::Json::object();
    for (const std::string& name : columns) {
      const auto value = value_of(reported[i], name);
      values[name] = base::or_null(value);
      row.push_back(value ? cell_text(*value, 24) : "");
    }
    row.push_back(log_command(run));
    table.row(row);
    if (!session.json) continue;
    list.push_back(lineage::run_head_json(run));
    if (!columns.empty()) list.back()["columns"] = std::move(values);
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
                      {"--all", "show all runs", &given->all},
                      {"--columns",
                       "extra columns: parameters, and the last values of metrics",
                       &given->columns,
                       {},
                       "NAME,…"}},
          .action = [&session, given] { return log(session, *given); }};
}

}  // namespace assay::cli
