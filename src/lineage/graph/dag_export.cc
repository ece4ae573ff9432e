#include "lineage/graph/dag_export.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::lineage {
namespace {

// A double-quoted Graphviz string. Backslash sequences ("\n", "\N") and HTML entities ("&lt;") have
// a meaning there and are escaped.
std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : base::printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
    if (c == '&') result += "amp;";
  }
  return result + "\"";
}

}  // namespace

std::string dag_dot(const DagView& view) {
  std::string text =
      "digraph lineage {\n  rankdir=LR;\n  node [fontname=\"monospace\", fontsize=10];\n"
      "  edge [color=\"#7a7a7a\"];\n";
  for (const std::size_t index : view.order) {
    const store::RunRecord& run = view.dag->runs[index].run;
    const std::string label =
        fmt::format("{} {}", short_name(run), base::shortened(command_text(run), 40));
    text += fmt::format(
        "  run{} [shape=box, style=\"rounded,filled\", fillcolor=\"#e3ecfa\", label={}, "
        "tooltip={}];\n",
        run.id, dot_string(label), dot_string(command_text(run)));
  }
  for (std::size_t b = 0; b < view.bundles.size(); ++b) {
    const Bundle& bundle = view.bundles[b];
    text += fmt::format("  file{} [shape=note, label={}, tooltip={}];\n", b,
                        dot_string(base::shortened_middle(view.label(bundle, 2), 40)),
                        dot_string(view.label(bundle, 20)));
    if (bundle.producer) {
      text += fmt::format("  run{} -> file{};\n", view.dag->runs[*bundle.producer].run.id, b);
    }
    for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
      text += fmt::format("  file{} -> run{}{};\n", b, view.dag->runs[bundle.consumers[i]].run.id,
                          bundle.stale[i] ? " [style=dashed]" : "");
    }
  }
  return text + "}\n";
}

base::Json dag_json(const Dag& dag) {
  base::Json runs = base::Json::array();
  for (const DagRun& one : dag.runs) {
    base::Json inputs = base::Json::array();
    base::Json outputs = base::Json::array();
    for (const DagInput& input : one.inputs) {
      inputs.push_back(
          {{"file", input.file}, {"stale", input.stale}, {"written_into", input.written_into}});
    }
    for (const std::size_t file : one.outputs) outputs.push_back({{"file", file}});
    const store::RunRecord& run = one.run;
    runs.push_back({{"id", run.id},
                    {"uid", run.uid},
                    {"stage", run.stage == 0 ? base::Json(nullptr) : base::Json(run.stage)},
                    {"superseded", run.superseded},
                    {"command", recorded_command_text(run)},
                    {"directory", run.directory},
                    {"status", store::name_of(run.status)},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)}});
  }
  base::Json files = base::Json::array();
  for (const DagFile& file : dag.files) {
    base::Json consumers = base::Json::array();
    for (const std::size_t run : file.consumers) consumers.push_back(dag.runs[run].run.id);
    files.push_back(
        {{"path", file.path},
         {"blake3", file.blake3 ? base::Json(file.blake3->hex()) : base::Json(nullptr)},
         {"size", file.size < 0 ? base::Json(nullptr) : base::Json(file.size)},
         {"deleted", file.deleted},
         {"files", file.files == 0 ? base::Json() : base::Json(file.files)},
         {"origin", file.origin.empty() ? base::Json() : base::Json(file.origin)},
         {"same_content", file.same_content ? base::Json{{"run", file.same_content->run},
                                                         {"path", file.same_content->path}}
                                            : base::Json(nullptr)},
         {"producer",
          file.producer ? base::Json(dag.runs[*file.producer].run.id) : base::Json(nullptr)},
         {"consumers", std::move(consumers)}});
  }
  return {{"runs", std::move(runs)}, {"files", std::move(files)}};
}

}  // namespace assay::lineage
