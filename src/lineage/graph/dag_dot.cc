#include <fmt/format.h>

#include "base/text.h"
#include "lineage/graph/dag_writers.h"

namespace assay::lineage {
namespace {

// A double-quoted Graphviz string. Backslashes too: "\n" and "\N" mean something there, and so do
// HTML's entities: "&lt;" would be read as "<".
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

}  // namespace assay::lineage
