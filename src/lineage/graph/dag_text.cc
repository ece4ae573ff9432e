#include "lineage/graph/dag_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/units.h"

namespace assay::lineage {
namespace {

constexpr std::size_t kCommandColumns = 90;
constexpr std::size_t kNamesShown = 3;

std::string shown(const store::RunRecord& run, Commands commands) {
  std::string text = base::printable(command_text(run));
  return commands == Commands::kCut ? base::shortened(text, kCommandColumns) : text;
}

std::string heading(const store::RunRecord& run, Commands commands) {
  std::string text = fmt::format("{}  {}", short_name(run), shown(run, commands));
  text += fmt::format("  (run {}, {})", run.id, store::name_of(run.status));
  return text + "\n";
}

// "    reads   " before the first line of a list, spaces before the others.
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

// What the consumer at `at` read, and from which run.
std::string read_line(const DagView& view, const Bundle& bundle, std::size_t at) {
  std::string line = view.label(bundle, kNamesShown);
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

std::string dag_text(const DagView& view, Commands commands) {
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
    text += heading(dag.runs[index].run, commands);
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
      std::string line = view.label(bundle, kNamesShown);
      for (std::size_t i = 0; i < bundle.consumers.size(); ++i) {
        line += fmt::format("{} {}", i == 0 ? "  →" : ",",
                            short_name(dag.runs[bundle.consumers[i]].run));
      }
      leaves.add(line);
    }
  }
  return text;
}

namespace {

// Up: from a run to the bundles it read, from a bundle to its producer. Down: from a run to the
// bundles it wrote, from a bundle to its readers.
struct Direction {
  bool up = true;
};

class Tree {
 public:
  Tree(const DagView& view, Direction direction, Commands commands)
      : view_(&view), up_(direction.up), commands_(commands), bundles_(view.dag->runs.size()) {
    for (std::size_t b = 0; b < view.bundles.size(); ++b) {
      const Bundle& bundle = view.bundles[b];
      if (up_) {
        for (const std::size_t run : bundle.consumers) bundles_[run].push_back(b);
      } else if (bundle.producer) {
        bundles_[*bundle.producer].push_back(b);
      }
    }
  }

  std::string text() {
    for (std::size_t b = 0; b < view_->bundles.size(); ++b) {
      const auto& files = view_->bundles[b].files;
      // Several runs may have left files in a folder.
      const bool folder =
          view_->dag->files[files[0]].files > 0 && is_subject(*view_->dag, files[0]);
      if (files == std::vector{*view_->dag->file} || folder) push(b, "", "");
      if (is_subject(*view_->dag, files[0])) subjects_.push_back(b);
    }
    while (!todo_.empty()) {
      const Item item = std::move(todo_.back());
      todo_.pop_back();
      item.is_run ? run(item) : bundle(item);
    }
    return text_;
  }

 private:
  // Depth first with an explicit stack: lineages can be long.
  struct Item {
    bool is_run = false;
    std::size_t index = 0;
    std::string first;  // before its line
    std::string rest;   // before the lines below it
  };

  void push(std::size_t index, std::string first, std::string rest) {
    todo_.push_back({false, index, std::move(first), std::move(rest)});
  }

  // Children in their order, the last one with a corner.
  void push_all(const std::vector<std::size_t>& children, bool are_runs, const std::string& rest) {
    for (std::size_t i = children.size(); i-- > 0;) {
      const bool last = i + 1 == children.size();
      todo_.push_back(
          {are_runs, children[i], rest + (last ? "└─ " : "├─ "), rest + (last ? "   " : "│  ")});
    }
  }

  void bundle(const Item& item) {
    const Bundle& bundle = view_->bundles[item.index];
    std::vector<std::size_t> runs;
    if (up_ && bundle.producer) runs = {*bundle.producer};
    if (!up_) runs = readers_of(item.index);
    text_ += fmt::format("{}{}  {}", item.first, view_->label(bundle, kNamesShown),
                         view_->detail(bundle));
    const std::string& origin = view_->dag->files[bundle.files[0]].origin;
    if (up_ && runs.empty()) text_ += "  " + (origin.empty() ? "from outside" : origin);
    if (!up_ && runs.empty() && item.rest.empty()) text_ += "\nnothing recorded has read it";
    if (const std::string remark = view_->remark(bundle); !remark.empty()) text_ += ", " + remark;
    text_ += "\n";
    push_all(runs, true, item.rest);
  }

  // The subject may have been made several times, with the same content.
  [[nodiscard]] std::vector<std::size_t> readers_of(std::size_t index) const {
    if (std::find(subjects_.begin(), subjects_.end(), index) == subjects_.end()) {
      return view_->bundles[index].consumers;
    }
    std::set<std::size_t> readers;
    for (const std::size_t b : subjects_) {
      readers.insert(view_->bundles[b].consumers.begin(), view_->bundles[b].consumers.end());
    }
    return {readers.begin(), readers.end()};
  }

  void run(const Item& item) {
    const store::RunRecord& run = view_->dag->runs[item.index].run;
    const std::string failed = run.status == store::RunStatus::kDone
                                   ? ""
                                   : fmt::format(", {}", store::name_of(run.status));
    const bool again = !shown_.insert(item.index).second;
    text_ += fmt::format("{}{} {}  (run {}{}){}\n", item.first, up_ ? "←" : "→",
                         shown(run, commands_), run.id, failed, again ? ", see above" : "");
    if (!again) push_all(bundles_[item.index], false, item.rest);
  }

  const DagView* view_;
  bool up_;
  Commands commands_;
  std::vector<std::vector<std::size_t>> bundles_;
  std::vector<std::size_t> subjects_;  // bundles
  std::set<std::size_t> shown_;
  std::vector<Item> todo_;
  std::string text_;
};

}  // namespace

std::string lineage_up_text(const DagView& view, Commands commands) {
  return Tree(view, {.up = true}, commands).text();
}

std::string lineage_down_text(const DagView& view, Commands commands) {
  return Tree(view, {.up = false}, commands).text();
}

}  // namespace assay::lineage
