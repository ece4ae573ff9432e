#include "spec/node_links.h"

#include <algorithm>

namespace assay::spec {
namespace {

// The links among the chosen GPUs, by their position in the choice.
class Graph {
 public:
  Graph(const machine::Machine& machine, const std::vector<int>& gpus) : size_(gpus.size()) {
    nvlinks_.resize(size_ * size_);
    const auto position = [&](int gpu) {
      return static_cast<std::size_t>(std::find(gpus.begin(), gpus.end(), gpu) - gpus.begin());
    };
    for (const machine::GpuLink& link : machine.gpu_links) {
      const std::size_t a = position(link.a);
      const std::size_t b = position(link.b);
      if (a == size_ || b == size_ || a == b || link.nvlinks <= 0) continue;
      nvlinks_[a * size_ + b] = nvlinks_[b * size_ + a] = link.nvlinks;
      switched_ = switched_ && link.nvswitch;
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  // Whether every link goes through switches.
  [[nodiscard]] bool switched() const { return switched_; }
  [[nodiscard]] std::int64_t nvlinks(std::size_t a, std::size_t b) const {
    return nvlinks_[a * size_ + b];
  }

  // The devices that `a` is linked to, including itself.
  [[nodiscard]] std::vector<std::size_t> linked_to(std::size_t a) const {
    std::vector<std::size_t> linked;
    for (std::size_t b = 0; b < size_; ++b) {
      if (a == b || nvlinks(a, b) > 0) linked.push_back(b);
    }
    return linked;
  }

 private:
  std::size_t size_;
  std::vector<std::int64_t> nvlinks_;
  bool switched_ = true;
};

// The size of the groups when all are equally large and every pair inside one is linked; else 1.
std::size_t group_size(const Graph& graph) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t a = 0; a < graph.size(); ++a) groups.push_back(graph.linked_to(a));
  for (const auto& group : groups) {
    if (group.size() != groups.front().size()) return 1;
    for (const std::size_t peer : group) {
      if (groups[peer] != group) return 1;
    }
  }
  return groups.front().size();
}

// NVLinks of the least connected device: through switches they serve every peer, direct links are
// summed.
std::int64_t fewest_nvlinks(const Graph& graph) {
  std::vector<std::int64_t> of_each(graph.size());
  for (std::size_t a = 0; a < graph.size(); ++a) {
    for (std::size_t b = 0; b < graph.size(); ++b) {
      const std::int64_t pair = graph.nvlinks(a, b);
      of_each[a] = graph.switched() ? std::max(of_each[a], pair) : of_each[a] + pair;
    }
  }
  return *std::min_element(of_each.begin(), of_each.end());
}

}  // namespace

NodeLinks node_links(const machine::Machine& machine, const std::vector<int>& gpus) {
  const Graph graph(machine, gpus);
  const std::size_t size = group_size(graph);
  if (size < 2) return {};
  const std::int64_t nvlinks = fewest_nvlinks(graph);
  if (size < graph.size()) {
    return {LinkKind::kNvlinkGroups, static_cast<std::int64_t>(size), nvlinks};
  }
  return {graph.switched() ? LinkKind::kNvswitch : LinkKind::kNvlinkMesh, 0, nvlinks};
}

}  // namespace assay::spec
