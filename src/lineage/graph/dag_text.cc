#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_writers.h"

namespace assay::lineage {
namespace {

constexpr std::size_t kCommandColumns = 100;
constexpr std::size_t kNames = 3;

std::string heading(const store::RunRecord& run) {
  const std::string command = base::shortened(base::printable(command_text(run)), kCommandColumns);
  std::string text = fmt::format("{}  {}", short_name(run), command);
  text += fmt::format("  (run {}, {})", run.id, store::name_of(run.status));
  return text + "\n";
}

// "    reads   " before the first line of a list, blanks before the others.
class Listing {
 public:
  Listing(std::string& text, std::string_view title) : text_(&text), title_(title) {}
  void add(const std::string& line) {
    *text_ += fmt::format("    {:<7} {}\n", first_ ? title_ : "", line);
    first_ = false;
  }

 private:
  std::string* text_;
  std::string_view title_;
  bool first_ = true;
};

// What the consumer at `at` read, and from whom.
std::string read_line(const DagView& view, const Bundle& bundle, std::size_t at) {
  std::string line = view.label(bundle, kNames);
  if (bundle.producer) {
    line += fmt::format("  ← {}", short_name(view.dag->runs[*bundle.producer].run));
  }
  if (const std::string remark = view.remark(bundle); !remark.empty()) {
    line += "  (from outside; " + remark + ")";
  }
  if (bundle.stale[at]) line += ", which has changed it since";
  return line;
}

}  // namespace

std::string dag_text(const DagView& view) {
  const Dag& dag = *view.dag;
  std::vector<std::vector<std::size_t>> read(dag.runs.size());
  std::vector<std::vector<std::size_t>> left(dag.runs.size());
  for (std::size_t b = 0; b < view.bundles.size(); ++b) {
    const Bundle& bundle = view.bundles[b];
    if (bundle.producer) left[*bundle.producer].push_back(b);
    for (const std::size_t run : bundle.consumers) read[run].push_back(b);
  }
  std::string text;
  for (const std::size_t index : view.order) {
    if (!text.empty()) text += "\n";
    text += heading(dag.runs[index].run);
    for (const bool into : {false, true}) {
      Listing reads(text, into ? "changes" : "reads");
      for (const std::size_t b : read[index]) {
        const Bundle& bundle = view.bundles[b];
        const auto at = static_cast<std::size_t>(
            std::find(bundle.consumers.begin(), bundle.consumers.end(), index) -
            bundle.consumers.begin());
        if (bundle.written_into[at] == into) reads.add(read_line(view, bundle, at));
      }
    }
    Listing leaves(text, "leaves");
    for (const std::size_t b : left[index]) {
      const Bundle& bundle = view.bundles[b];
      std::string line = view.label(bundle, kNames);
      for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
        line += fmt::format("{} {}", i == 0 ? "  →" : ",",
                            short_name(dag.runs[bundle.consumers[i]].run));
      }
      leaves.add(line);
    }
  }
  return text;
}

}  // namespace assay::lineage
