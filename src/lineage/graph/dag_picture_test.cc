// dag_svg and dag_dot: legible in both colour schemes, and texts escaped correctly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <regex>

#include "lineage/graph/dag_picture.h"

namespace assay::lineage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An old run and its file, which a failed run read and which is not what it was.
Dag drawn_dag() {
  store::RunRecord old;
  old.id = 1;
  old.command = {"make", "a&lt;b"};
  old.status = store::RunStatus::kDone;
  old.superseded = true;
  store::RunRecord bad;
  bad.id = 2;
  bad.command = {"use"};
  bad.status = store::RunStatus::kFailed;
  Dag dag;
  dag.runs = {{.run = old, .inputs = {}, .outputs = {0}},
              {.run = bad, .inputs = {{.file = 0, .stale = true}}, .outputs = {}}};
  dag.files = {{.path = "/project/R&D", .blake3 = {}, .size = 1, .producer = 0, .consumers = {1}}};
  return dag;
}

// WCAG 2: contrast of two colours "#rrggbb", from 1 to 21.
double contrast(const std::string& a, const std::string& b) {
  const auto luminance = [](const std::string& colour) {
    constexpr std::array<double, 3> kWeights = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += kWeights.at(i) * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  const double light = std::max(luminance(a), luminance(b));
  const double dark = std::min(luminance(a), luminance(b));
  return (light + 0.05) / (dark + 0.05);
}

using Colours = std::map<std::string, std::string>;

Colours colours_in(const std::string& text) {
  static const std::regex pattern("--([a-z-]+): (#[0-9a-f]{6})");
  Colours colours;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    colours[(*at)[1]] = (*at)[2];
  }
  return colours;
}

TEST(DagDrawing, ContrastMeetsWcag) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 0.01);
  EXPECT_NEAR(contrast("#767676", "#ffffff"), 4.54, 0.01);
}

TEST(DagDrawing, SvgIsLegibleInLightAndDark) {
  const Dag dag = drawn_dag();
  const std::string svg = dag_svg(view_of(dag, "/project"));
  EXPECT_THAT(svg, Not(HasSubstr("opacity")));
  const std::size_t dark = svg.find("@media (prefers-color-scheme: dark)");
  ASSERT_NE(dark, std::string::npos);
  for (const Colours& colours : {colours_in(svg.substr(0, dark)), colours_in(svg.substr(dark))}) {
    for (const char* fill : {"page", "run", "old", "file", "outside", "bad", "asked"}) {
      EXPECT_GE(contrast(colours.at("ink"), colours.at(fill)), 4.5) << fill;
      EXPECT_GE(contrast(colours.at("soft"), colours.at(fill)), 4.5) << fill;
    }
    for (const char* line : {"line", "bad-edge", "run-edge", "old-edge", "file-edge"}) {
      EXPECT_GE(contrast(colours.at(line), colours.at("page")), 3) << line;
    }
  }
}

TEST(DagDrawing, AStaleLineHasATipOfItsColour) {
  const Dag dag = drawn_dag();
  const std::string svg = dag_svg(view_of(dag, "/project"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"line stale\" marker-end=\"url(#tip-stale)\""));
  EXPECT_THAT(svg, HasSubstr("<marker id=\"tip-stale\" class=\"stale\""));
  EXPECT_THAT(svg, HasSubstr("marker.stale path { fill: var(--bad-edge); }"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"line\" marker-end=\"url(#tip)\""));
}

TEST(DagDrawing, DotReadsNoEntitiesIntoNames) {
  const Dag dag = drawn_dag();
  const std::string dot = dag_dot(view_of(dag, "/project"));
  EXPECT_THAT(dot, HasSubstr("label=\"run 1 make 'a&amp;lt;b'\""));
  EXPECT_THAT(dot, HasSubstr("label=\"R&amp;D\", tooltip=\"R&amp;D\""));
}

}  // namespace
}  // namespace assay::lineage
