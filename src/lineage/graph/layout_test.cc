#include "lineage/graph/layout.h"

#include <rapidcheck/gtest.h>

#include <cmath>

namespace assay::lineage {
namespace {

Line line(std::size_t from, std::size_t to) {
  return {from, to};
}

TEST(Layout, AChainGoesFromLeftToRightOnOneLevel) {
  std::vector<Box> boxes(4, {.width = 100, .height = 40});
  std::vector<Line> lines = {line(2, 0), line(0, 3), line(3, 1)};
  const Point size = lay_out(boxes, lines);
  EXPECT_LT(boxes[2].x, boxes[0].x);
  EXPECT_LT(boxes[0].x, boxes[3].x);
  EXPECT_LT(boxes[3].x, boxes[1].x);
  for (const Box& box : boxes) EXPECT_NEAR(box.y, boxes[0].y, 1e-6);
  EXPECT_NEAR(size.x, 4 * 100 + 3 * Spacing{}.between_layers, 1e-6);
}

TEST(Layout, ADiamondIsSymmetric) {
  std::vector<Box> boxes(4, {.width = 100, .height = 40});
  std::vector<Line> lines = {line(0, 1), line(0, 2), line(1, 3), line(2, 3)};
  lay_out(boxes, lines);
  EXPECT_NEAR(boxes[1].x, boxes[2].x, 1e-6);
  EXPECT_NEAR(boxes[0].y, boxes[3].y, 1);
  EXPECT_NEAR((boxes[1].y + boxes[2].y) / 2, boxes[0].y, 1);
}

TEST(Layout, CrossingsThatNeedNotBeAreNot) {
  std::vector<Box> boxes(6, {.width = 10, .height = 10});
  std::vector<Line> lines = {line(0, 5), line(1, 4), line(2, 3)};
  lay_out(boxes, lines);
  for (const Line& one : lines) EXPECT_NEAR(boxes[one.from].y, boxes[one.to].y, 1e-6);
}

TEST(Layout, NothingIsNoPicture) {
  std::vector<Box> boxes;
  std::vector<Line> lines;
  EXPECT_EQ(lay_out(boxes, lines).x, 0);
}

struct Graph {
  std::vector<Box> boxes;
  std::vector<Line> lines;
};

// Including cycles and self-loops.
Graph random_graph() {
  Graph graph;
  const auto count = *rc::gen::inRange<std::size_t>(1, 25);
  for (std::size_t i = 0; i < count; ++i) {
    graph.boxes.push_back(
        {.width = 10.0 * *rc::gen::inRange(1, 20), .height = 10.0 * *rc::gen::inRange(1, 6)});
  }
  for (int i = *rc::gen::inRange(0, 50); i > 0; --i) {
    graph.lines.push_back(
        {*rc::gen::inRange<std::size_t>(0, count), *rc::gen::inRange<std::size_t>(0, count)});
  }
  return graph;
}

// Points along the line as it is drawn: from one point to the next a cubic that is level at both,
// with its controls half-way.
std::vector<Point> along(const Line& line) {
  std::vector<Point> sampled;
  constexpr int kSamples = 40;
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const Point& a = line.points[i - 1];
    const Point& b = line.points[i];
    const double middle = (a.x + b.x) / 2;
    for (int k = 0; k <= kSamples; ++k) {
      const double t = static_cast<double>(k) / kSamples, u = 1 - t;
      const auto at = [&](double p0, double p1, double p2, double p3) {
        return u * u * u * p0 + 3 * u * u * t * p1 + 3 * u * t * t * p2 + t * t * t * p3;
      };
      sampled.push_back({at(a.x, middle, middle, b.x), at(a.y, a.y, b.y, b.y)});
    }
  }
  return sampled;
}

bool is_inside(const Point& point, const Box& box) {
  constexpr double kEdge = 1e-3;
  return point.x > box.x + kEdge && point.x < box.x + box.width - kEdge &&
         point.y > box.y + kEdge && point.y < box.y + box.height - kEdge;
}

TEST(Layout, ALineFromANarrowBoxDoesNotRunUnderAWiderOne) {
  std::vector<Box> boxes(4, {.width = 200, .height = 40});
  boxes[0].width = 40;
  std::vector<Line> lines = {line(0, 2), line(0, 3), line(1, 2), line(1, 3)};
  lay_out(boxes, lines);
  for (const Line& one : lines) {
    for (const Point& point : along(one)) EXPECT_FALSE(is_inside(point, boxes[1 - one.from]));
  }
}

RC_GTEST_PROP(LayoutProperty, LinesRunUnderNoBox, ()) {
  auto [boxes, lines] = random_graph();
  lay_out(boxes, lines);
  for (const Line& one : lines) {
    for (const Point& point : along(one)) {
      for (const Box& box : boxes) RC_ASSERT(!is_inside(point, box));
    }
  }
}

RC_GTEST_PROP(LayoutProperty, BoxesDoNotOverlapAndLinesMeetThem, ()) {
  auto [boxes, lines] = random_graph();
  const std::size_t count = boxes.size();
  const Point size = lay_out(boxes, lines);
  for (std::size_t i = 0; i < count; ++i) {
    const Box& a = boxes[i];
    RC_ASSERT(a.x >= 0 && a.y >= -1e-6 && a.x + a.width <= size.x + 1e-6);
    RC_ASSERT(a.y + a.height <= size.y + 1e-6);
    for (std::size_t k = 0; k < i; ++k) {
      const Box& b = boxes[k];
      const bool apart = a.x >= b.x + b.width - 1e-6 || b.x >= a.x + a.width - 1e-6 ||
                         a.y >= b.y + b.height - 1e-6 || b.y >= a.y + a.height - 1e-6;
      RC_ASSERT(apart);
    }
  }
  for (const Line& one : lines) {
    RC_ASSERT(one.points.size() >= 2);
    const auto meets = [](const Point& point, const Box& box) {
      const bool edge =
          std::abs(point.x - box.x) < 1e-6 || std::abs(point.x - box.x - box.width) < 1e-6;
      return edge && point.y >= box.y - 1e-6 && point.y <= box.y + box.height + 1e-6;
    };
    RC_ASSERT(meets(one.points.front(), boxes[one.from]));
    RC_ASSERT(meets(one.points.back(), boxes[one.to]));
    for (const Point& point : one.points) RC_ASSERT(point.y >= -1e-6 && point.y <= size.y + 1e-6);
  }
}

}  // namespace
}  // namespace assay::lineage
