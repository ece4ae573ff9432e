#include "lineage/graph/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::lineage {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

// The lines that point backwards in a depth-first walk: without them there is no cycle.
std::vector<bool> backward_lines(std::size_t count, const std::vector<Line>& lines) {
  std::vector<std::vector<std::size_t>> out(count);
  for (std::size_t i = 0; i < lines.size(); ++i) out[lines[i].from].push_back(i);
  enum class Mark : char { kNew, kOpen, kDone };
  std::vector<Mark> marks(count, Mark::kNew);
  std::vector<bool> backward(lines.size());
  std::vector<std::pair<std::size_t, std::size_t>> stack;
  for (std::size_t root = 0; root < count; ++root) {
    if (marks[root] != Mark::kNew) continue;
    marks[root] = Mark::kOpen;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == out[node].size()) {
        marks[node] = Mark::kDone;
        stack.pop_back();
        continue;
      }
      const std::size_t line = out[node][next++];
      const std::size_t to = lines[line].to;
      if (marks[to] == Mark::kOpen) backward[line] = true;
      if (marks[to] != Mark::kNew) continue;
      marks[to] = Mark::kOpen;
      stack.push_back({to, 0});
    }
  }
  return backward;
}

// The layer of each node: one more than the highest of its predecessors. Nodes without predecessors
// move right, next to their first successor.
std::vector<std::size_t> layers_of(std::size_t count, const std::vector<Edge>& edges) {
  std::vector<std::vector<std::size_t>> out(count);
  std::vector<std::size_t> waiting(count);
  for (const auto& [from, to] : edges) {
    out[from].push_back(to);
    ++waiting[to];
  }
  std::vector<bool> source(count);
  std::vector<std::size_t> todo;
  for (std::size_t node = 0; node < count; ++node) {
    source[node] = waiting[node] == 0;
    if (source[node]) todo.push_back(node);
  }
  std::vector<std::size_t> layer(count);
  while (!todo.empty()) {
    const std::size_t node = todo.back();
    todo.pop_back();
    for (const std::size_t to : out[node]) {
      layer[to] = std::max(layer[to], layer[node] + 1);
      if (--waiting[to] == 0) todo.push_back(to);
    }
  }
  for (std::size_t node = 0; node < count; ++node) {
    if (!source[node] || out[node].empty()) continue;
    std::size_t nearest = layer[out[node][0]];
    for (const std::size_t to : out[node]) nearest = std::min(nearest, layer[to]);
    layer[node] = nearest - 1;
  }
  return layer;
}

// Nodes, and a dummy node for each layer that a line crosses.
struct Layered {
  std::vector<std::size_t> layer;
  std::vector<double> height;
  std::vector<Edge> edges;                     // between neighbouring layers
  std::vector<std::vector<std::size_t>> path;  // of each line: its nodes from left to right
  std::vector<std::vector<std::size_t>> rows;  // of each layer: its nodes from top to bottom
  std::vector<std::vector<std::size_t>> before, after;  // neighbours
  std::vector<double> center;
};

Layered layered(const std::vector<Box>& boxes, const std::vector<Line>& lines) {
  const std::vector<bool> backward = backward_lines(boxes.size(), lines);
  std::vector<Edge> forward;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.from == line.to) continue;
    forward.push_back(backward[i] ? Edge{line.to, line.from} : Edge{line.from, line.to});
  }
  Layered graph;
  graph.layer = layers_of(boxes.size(), forward);
  for (const Box& box : boxes) graph.height.push_back(box.height);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::size_t> path = {lines[i].from, lines[i].to};
    if (backward[i]) std::swap(path[0], path[1]);
    for (std::size_t layer = graph.layer[path[0]] + 1; layer < graph.layer[path.back()]; ++layer) {
      path.insert(path.end() - 1, graph.layer.size());
      graph.layer.push_back(layer);
      graph.height.push_back(0);
    }
    for (std::size_t k = 0; k + 1 < path.size(); ++k) graph.edges.push_back({path[k], path[k + 1]});
    graph.path.push_back(std::move(path));
  }
  const std::size_t count = graph.layer.size();
  graph.before.resize(count);
  graph.after.resize(count);
  for (const auto& [from, to] : graph.edges) {
    graph.after[from].push_back(to);
    graph.before[to].push_back(from);
  }
  for (std::size_t node = 0; node < count; ++node) {
    if (graph.rows.size() <= graph.layer[node]) graph.rows.resize(graph.layer[node] + 1);
    graph.rows[graph.layer[node]].push_back(node);
  }
  graph.center.resize(count);
  return graph;
}

// Sorts each layer by the mean position of its neighbours, in several sweeps in both directions.
void order_rows(Layered& graph) {
  std::vector<double> place(graph.layer.size());
  const auto number = [&](const std::vector<std::size_t>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) place[row[i]] = static_cast<double>(i);
  };
  for (const auto& row : graph.rows) number(row);
  const auto sort = [&](std::vector<std::size_t>& row, const auto& neighbours) {
    std::vector<std::pair<double, std::size_t>> keyed;
    for (const std::size_t node : row) {
      double sum = 0;
      for (const std::size_t other : neighbours[node]) sum += place[other];
      const auto count = static_cast<double>(neighbours[node].size());
      keyed.push_back({count == 0 ? place[node] : sum / count, node});
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keyed[i].second;
    number(row);
  };
  constexpr int kSweeps = 12;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (auto& row : graph.rows) sort(row, graph.before);
    for (auto row = graph.rows.rbegin(); row != graph.rows.rend(); ++row) sort(*row, graph.after);
  }
  for (auto& row : graph.rows) sort(row, graph.before);
}

// Moves the nodes of a layer to their preferred positions as far as their order and the gaps allow:
// nodes that would overlap form a block, placed at the mean of its members' preferences.
void place_row(Layered& graph, const std::vector<std::size_t>& row,
               const std::vector<double>& wanted, double gap) {
  struct Block {
    double sum = 0;  // of the block starts that the members prefer
    double count = 0;
    double size = 0;
    [[nodiscard]] double start() const { return sum / count; }
  };
  std::vector<Block> blocks;
  std::vector<std::size_t> members;
  for (const std::size_t node : row) {
    const double size = graph.height[node] + gap;
    blocks.push_back({wanted[node] - size / 2, 1, size});
    members.push_back(1);
    while (blocks.size() > 1) {
      Block& last = blocks.back();
      Block& previous = blocks[blocks.size() - 2];
      if (previous.start() + previous.size <= last.start()) break;
      previous.sum += last.sum - last.count * previous.size;
      previous.count += last.count;
      previous.size += last.size;
      members[members.size() - 2] += members.back();
      blocks.pop_back();
      members.pop_back();
    }
  }
  std::size_t at = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    double y = blocks[b].start();
    for (std::size_t i = 0; i < members[b]; ++i, ++at) {
      const double size = graph.height[row[at]] + gap;
      graph.center[row[at]] = y + size / 2;
      y += size;
    }
  }
}

void place_rows(Layered& graph, double gap) {
  for (const auto& row : graph.rows) {
    double y = 0;
    for (const std::size_t node : row) {
      graph.center[node] = y + (graph.height[node] + gap) / 2;
      y += graph.height[node] + gap;
    }
  }
  std::vector<double> wanted(graph.layer.size());
  constexpr int kRounds = 24;
  for (int round = 0; round < kRounds; ++round) {
    const auto adjust = [&](const std::vector<std::size_t>& row) {
      for (const std::size_t node : row) {
        double sum = 0;
        std::size_t count = 0;
        for (const auto* side : {&graph.before[node], &graph.after[node]}) {
          for (const std::size_t other : *side) sum += graph.center[other];
          count += side->size();
        }
        wanted[node] = count == 0 ? graph.center[node] : sum / static_cast<double>(count);
      }
      place_row(graph, row, wanted, gap);
    };
    if (round % 2 == 0) {
      for (const auto& row : graph.rows) adjust(row);
    } else {
      for (auto row = graph.rows.rbegin(); row != graph.rows.rend(); ++row) adjust(*row);
    }
  }
}

}  // namespace

Point lay_out(std::vector<Box>& boxes, std::vector<Line>& lines, const Spacing& spacing) {
  if (boxes.empty()) return {};
  Layered graph = layered(boxes, lines);
  order_rows(graph);
  place_rows(graph, spacing.between_boxes);

  double top = graph.center[0];
  for (std::size_t i = 0; i < graph.center.size(); ++i) {
    top = std::min(top, graph.center[i] - graph.height[i] / 2);
  }
  std::vector<double> left(graph.rows.size());
  std::vector<double> width(graph.rows.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    width[graph.layer[i]] = std::max(width[graph.layer[i]], boxes[i].width);
  }
  for (std::size_t layer = 1; layer < left.size(); ++layer) {
    left[layer] = left[layer - 1] + width[layer - 1] + spacing.between_layers;
  }
  Point size{left.back() + width.back(), 0};
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    boxes[i].x = left[graph.layer[i]];
    boxes[i].y = graph.center[i] - boxes[i].height / 2 - top;
    size.y = std::max(size.y, boxes[i].y + boxes[i].height);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<Point>& points = lines[i].points;
    for (const std::size_t node : graph.path[i]) {
      const std::size_t layer = graph.layer[node];
      const double y = graph.center[node] - top;
      size.y = std::max(size.y, y);
      if (node < boxes.size()) {
        const bool first = node == graph.path[i].front();
        const double right = boxes[node].x + boxes[node].width;
        points.push_back({first ? right : boxes[node].x, y});
        // Horizontal to the end of the column: a wider box above or below must not be crossed.
        const double column_end = left[layer] + width[layer];
        if (first && right < column_end && lines[i].from != lines[i].to) {
          points.push_back({column_end, y});
        }
      } else {
        points.push_back({left[layer], y});
        points.push_back({left[layer] + width[layer], y});
      }
    }
    if (graph.path[i].front() != lines[i].from) std::reverse(points.begin(), points.end());
  }
  return size;
}

}  // namespace assay::lineage
