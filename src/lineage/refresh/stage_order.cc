#include "lineage/refresh/stage_order.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace assay::lineage {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

// Which stages change and which need a path.
struct Users {
  std::vector<std::size_t> changers, readers;
};

std::map<std::string_view, Users> users_of_paths(const LiveStages& stages) {
  std::map<std::string_view, Users> users;
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    const auto add = [&](std::string_view path) {
      auto& changers = users[path].changers;
      if (changers.empty() || changers.back() != stage) changers.push_back(stage);
    };
    for (const store::Output& output : stages.runs()[stage].outputs) {
      add(output.path);
      if (output.status == store::OutputStatus::kRenamed && !output.from.empty()) add(output.from);
    }
    for (const store::Input& input : stages.needs(stage)) {
      auto& readers = users[input.path].readers;
      if (readers.empty() || readers.back() != stage) readers.push_back(stage);
    }
  }
  return users;
}

// Topological sort with two kinds of edges: strict (one stage feeds the other) and preferred.
class Sorter {
 public:
  Sorter(std::size_t stages, const std::set<Pair>& feeds, const std::set<Pair>& preferred)
      : edges_(stages), open_(stages) {
    for (const Pair& pair : feeds) add(pair, true);
    for (const Pair& pair : preferred) add(pair, false);
    for (std::size_t stage = 0; stage < stages; ++stage) place_in_queues(stage);
  }

  std::vector<std::size_t> sorted() {
    std::vector<std::size_t> order;
    while (!left_.empty()) {
      // Falls back to ignoring preferred edges if these form a cycle, and all edges if stages feed
      // each other.
      const std::set<std::size_t>& queue = !ready_.empty() ? ready_ : !fed_.empty() ? fed_ : left_;
      const std::size_t stage = *queue.begin();
      order.push_back(stage);
      for (std::set<std::size_t>* one : {&ready_, &fed_, &left_}) one->erase(stage);
      for (const auto& [later, strict] : edges_[stage]) {
        --(strict ? open_[later].strict : open_[later].preferred);
        if (left_.contains(later)) place_in_queues(later);
      }
    }
    return order;
  }

 private:
  struct Open {
    int strict = 0;
    int preferred = 0;
  };

  void add(const Pair& pair, bool strict) {
    edges_[pair.first].push_back({pair.second, strict});
    ++(strict ? open_[pair.second].strict : open_[pair.second].preferred);
  }
  void place_in_queues(std::size_t stage) {
    left_.insert(stage);
    if (open_[stage].strict > 0) return;
    fed_.insert(stage);
    if (open_[stage].preferred == 0) ready_.insert(stage);
  }

  std::vector<std::vector<std::pair<std::size_t, bool>>> edges_;
  std::vector<Open> open_;  // how many that come before are not placed yet
  std::set<std::size_t> ready_, fed_, left_;
};

}  // namespace

StageOrder::StageOrder(const LiveStages& stages) {
  const std::size_t count = stages.runs().size();
  std::set<Pair> feeds;
  for (std::size_t stage = 0; stage < count; ++stage) {
    for (const store::Input& input : stages.needs(stage)) {
      if (const auto source = stages.source(stage, input)) feeds.insert({source->stage, stage});
    }
    for (const auto& [source, path] : stages.lookup_sources(stage)) feeds.insert({source, stage});
  }
  const auto users = users_of_paths(stages);
  // Pairs that share a file, the lower number first.
  std::set<Pair> shared;
  for (const auto& [path, of_path] : users) {
    for (const std::size_t changer : of_path.changers) {
      for (const auto* others : {&of_path.changers, &of_path.readers}) {
        for (const std::size_t other : *others) {
          if (other != changer) shared.insert(std::minmax(changer, other));
        }
      }
    }
  }
  std::set<Pair> preferred = shared;
  for (const Pair& pair : feeds) {
    preferred.erase(pair);
    preferred.erase({pair.second, pair.first});
  }
  order_ = Sorter(count, feeds, preferred).sorted();

  std::vector<std::size_t> place(count);
  for (std::size_t i = 0; i < count; ++i) place[order_[i]] = i;
  before_.resize(count);
  makers_.resize(count);
  for (const Pair& pair : shared) {
    const bool in_order = place[pair.first] < place[pair.second];
    before_[in_order ? pair.second : pair.first].push_back(in_order ? pair.first : pair.second);
  }
  for (const auto& [path, of_path] : users) {
    for (const std::size_t reader : of_path.readers) {
      for (const std::size_t changer : of_path.changers) {
        if (place[changer] < place[reader]) makers_[reader].push_back(changer);
      }
    }
  }
  for (auto* lists : {&before_, &makers_}) {
    for (std::vector<std::size_t>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }
}

std::set<std::size_t> StageOrder::with_makers(const std::vector<std::size_t>& stages) const {
  std::set<std::size_t> found(stages.begin(), stages.end());
  std::vector<std::size_t> todo = stages;
  while (!todo.empty()) {
    const std::size_t stage = todo.back();
    todo.pop_back();
    for (const std::size_t maker : makers_[stage]) {
      if (found.insert(maker).second) todo.push_back(maker);
    }
  }
  return found;
}

}  // namespace assay::lineage
