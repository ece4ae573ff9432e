// Trees for `assay lineage`.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_writers.h"

namespace assay::lineage {
namespace {

constexpr std::size_t kCommandColumns = 90;
constexpr std::size_t kNames = 3;

// One direction through the bundles: from a run to the bundles it read (or left), from a bundle to
// the run that left it (or to those that read it).
struct Direction {
  bool up = true;
};

class Tree {
 public:
  Tree(const DagView& view, Direction direction)
      : view_(&view), up_(direction.up), bundles_(view.dag->runs.size()) {
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
      if (files == std::vector{*view_->dag->file}) push(b, "", "");
      if (is_asked(*view_->dag, files[0])) asked_.push_back(b);
    }
    while (!todo_.empty()) {
      const Item item = std::move(todo_.back());
      todo_.pop_back();
      item.is_run ? run(item) : bundle(item);
    }
    return text_;
  }

 private:
  // Depth first with a stack of our own: lineages can be long.
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
    text_ +=
        fmt::format("{}{}  {}", item.first, view_->label(bundle, kNames), view_->detail(bundle));
    if (up_ && runs.empty()) text_ += "  from outside";
    if (const std::string remark = view_->remark(bundle); !remark.empty()) text_ += ", " + remark;
    text_ += "\n";
    push_all(runs, true, item.rest);
  }

  // What was asked about may have been made several times; whoever read it read the same.
  [[nodiscard]] std::vector<std::size_t> readers_of(std::size_t index) const {
    if (std::find(asked_.begin(), asked_.end(), index) == asked_.end()) {
      return view_->bundles[index].consumers;
    }
    std::set<std::size_t> readers;
    for (const std::size_t b : asked_) {
      readers.insert(view_->bundles[b].consumers.begin(), view_->bundles[b].consumers.end());
    }
    return {readers.begin(), readers.end()};
  }

  void run(const Item& item) {
    const store::RunRecord& run = view_->dag->runs[item.index].run;
    const std::string command =
        base::shortened(base::printable(command_text(run)), kCommandColumns);
    const bool again = !shown_.insert(item.index).second;
    text_ += fmt::format("{}{} {}  (run {}){}\n", item.first, up_ ? "←" : "→", command, run.id,
                         again ? ", see above" : "");
    if (!again) push_all(bundles_[item.index], false, item.rest);
  }

  const DagView* view_;
  bool up_;
  std::vector<std::vector<std::size_t>> bundles_;
  std::vector<std::size_t> asked_;  // bundles
  std::set<std::size_t> shown_;
  std::vector<Item> todo_;
  std::string text_;
};

}  // namespace

std::string lineage_up_text(const DagView& view) {
  return Tree(view, {.up = true}).text();
}

std::string lineage_down_text(const DagView& view) {
  return Tree(view, {.up = false}).text();
}

}  // namespace assay::lineage
