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
    const store::Job& job = view.dag->jobs[index].job;
    const std::string label =
        fmt::format("{} {}", short_name(job), base::shortened(command_text(job), 40));
    text += fmt::format(
        "  job{} [shape=box, style=\"rounded,filled\", fillcolor=\"#e3ecfa\", label={}, "
        "tooltip={}];\n",
        job.id, dot_string(label), dot_string(command_text(job)));
  }
  for (std::size_t b = 0; b < view.bundles.size(); ++b) {
    const Bundle& bundle = view.bundles[b];
    text += fmt::format("  file{} [shape=note, label={}, tooltip={}];\n", b,
                        dot_string(base::shortened_middle(view.label(bundle, 2), 40)),
                        dot_string(view.label(bundle, 20)));
    if (bundle.producer) {
      text += fmt::format("  job{} -> file{};\n", view.dag->jobs[*bundle.producer].job.id, b);
    }
    for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
      text += fmt::format("  file{} -> job{}{};\n", b, view.dag->jobs[bundle.consumers[i]].job.id,
                          bundle.stale[i] ? " [style=dashed]" : "");
    }
  }
  return text + "}\n";
}

}  // namespace assay::lineage
