// assay dag [RUN|PATH|HASH]: the graph of runs and files, as text, picture or data.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_picture.h"
#include "lineage/graph/dag_query.h"
#include "lineage/graph/dag_text.h"
#include "lineage/graph/run_json.h"

namespace assay::cli {
namespace {

struct DagOptions {
  std::string what, format, file;
  bool all = false;
};

std::vector<std::string> formats() {
  return {"text", "json", "dot", "svg"};
}

base::Result<lineage::Dag> dag_of(store::Store& store, const DagOptions& options,
                                  const std::filesystem::path& directory) {
  if (!options.what.empty()) {
    ASSAY_TRY(const auto named, lineage::resolve_name(store, options.what, directory));
    return lineage::dag_around(store, named, {});
  }
  if (options.all) return lineage::whole_dag(store);
  ASSAY_TRY(const lineage::LiveStages stages, lineage::load_live_stages(store));
  return lineage::live_dag(stages);
}

// --format, or the output's extension.
base::Result<std::string> format_of_dag(const DagOptions& options) {
  const auto known = formats();
  const auto is_known = [&](const std::string& format) {
    return std::find(known.begin(), known.end(), format) != known.end();
  };
  if (!options.format.empty()) {
    if (is_known(options.format)) return options.format;
    return base::fail(base::usage_error("dag", fmt::format("unknown format '{}'", options.format),
                                        base::suggestion(options.format, known)));
  }
  const std::string extension = std::filesystem::path(options.file).extension();
  if (extension.empty() || extension == ".txt") return "text";
  if (is_known(extension.substr(1))) return extension.substr(1);
  return base::fail(base::usage_error(options.file,
                                      fmt::format("unknown format '{}'", extension.substr(1)),
                                      "use .svg, .dot, .json or .txt, or give --format"));
}

base::Result<base::ExitCode> dag(const Session& session, const DagOptions& options) {
  ASSAY_TRY(std::string format, format_of_dag(options));
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::Dag graph, dag_of(store, options, directory));
  if (session.json) format = "json";
  const lineage::DagView view = lineage::view_of(graph, directory);
  std::string text;
  if (format == "json") text = base::json_text(lineage::dag_json(graph));
  if (format == "dot") text = lineage::dag_dot(view);
  if (format == "svg") text = lineage::dag_svg(view);
  if (format == "text") text = lineage::dag_text(view, shown_commands(options.file.empty()));
  if (!options.file.empty()) {
    ASSAY_TRY_VOID(base::write_output(options.file, text));
    session.print_json(base::Json{{"file", options.file}});
    session.print(
        fmt::format("{}: {}, {}\n", base::printable(options.file),
                    base::counted(static_cast<std::int64_t>(graph.runs.size()), "run"),
                    base::counted(static_cast<std::int64_t>(graph.files.size()), "file")));
    return base::ExitCode::kYes;
  }
  if (session.json) {
    session.print_json(lineage::dag_json(graph));
    return base::ExitCode::kYes;
  }
  session.print(text);
  if (format != "text") return base::ExitCode::kYes;
  if (graph.runs.empty() && graph.files.empty()) {
    session.print("no run has succeeded yet\n");
    session.next("assay run --help");
  } else {
    session.next("assay dag -o dag.svg");
  }
  return base::ExitCode::kYes;
}

}  // namespace

Verb dag_verb(const Session& session) {
  const auto given = std::make_shared<DagOptions>();
  return {
      .name = "dag",
      .description = "show the graph of runs and the files between them",
      .examples = {"assay dag", "assay dag last", "assay dag -o dag.svg"},
      .arguments = {{"WHAT",
                     "a run, path or hash: only what it came from and what came from it;"
                     " default: the current stages",
                     &given->what,
                     false,
                     {},
                     true}},
      .options = {{"--format", "text, json, dot or svg; default: the output's extension, or text",
                   &given->format, formats, "FORMAT"},
                  {"-o,--output", "write to this file", &given->file, {}, "FILE", true},
                  {"--all", "all recorded runs, not only the current stages", &given->all}},
      .action = [&session, given] { return dag(session, *given); }};
}

}  // namespace assay::cli
