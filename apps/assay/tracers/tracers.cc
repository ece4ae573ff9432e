// assay tracers: which tracers of `assay run` work here, and why the others do not.
#include <fmt/format.h>

#include "assay/verbs.h"
#include "base/table.h"
#include "observe/collect/tracers.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> tracers(const Session& session) {
  base::Json list = base::Json::array();
  base::Table table({"tracer", "works", "why"});
  std::string chosen;
  for (const collect::Tracer tracer : collect::kTracers) {
    const collect::Preflight found = collect::preflight(tracer);
    const std::string name(collect::name_of(tracer));
    if (found.available && chosen.empty()) chosen = name;
    list.push_back({{"name", name},
                    {"available", found.available},
                    {"reason", found.reason},
                    {"notes", found.notes}});
    table.row({name, found.available ? "yes" : "no", found.reason});
    for (const std::string& note : found.notes) table.row({"", "", note});
  }
  session.print_json(base::Json{{"auto", base::or_null(chosen)}, {"tracers", list}});
  session.print(table);
  session.print(chosen.empty() ? "no tracer works here: `assay run` runs commands unrecorded\n"
                               : fmt::format("`--tracer auto` uses {}\n", chosen));
  session.next("assay run --help");
  return chosen.empty() ? base::ExitCode::kUnfit : base::ExitCode::kYes;
}

}  // namespace

Verb tracers_verb(const Session& session) {
  return {.name = "tracers",
          .description = "list which tracers of `assay run` work here, and why the others do not",
          .examples = {"assay tracers", "assay tracers --json"},
          .action = [&session] { return tracers(session); }};
}

}  // namespace assay::cli
