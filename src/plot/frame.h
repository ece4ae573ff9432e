// What all charts have around their data: the page, headings, axes and grid.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plot/axis.h"
#include "plot/labels.h"
#include "plot/svg.h"

namespace assay::plot {

struct Heading {
  std::string title;
  std::string subtitle = {};
};

inline constexpr double kPageWidth = 760;
inline constexpr double kMargin = 16;

// The whole drawing around what `body` wrote. The description is for those who cannot see it.
std::string page(const Heading& heading, std::string_view description, double height,
                 const Svg& body);

// The same drawing without its style sheet, for a document that has the sheet once.
std::string without_style(std::string drawing);
// What the drawing says in words: its description, as plain text.
std::string words_of(std::string_view drawing);

// At the top of the page. Returns where the next thing may begin.
double draw_heading(Svg& svg, const Heading& heading);

// How wide the labels of an axis are, as far as they are shown.
double label_room(const AxisLine& line);

// Grid lines across the plot, labels below it as far as they do not touch, and the axis' title
// below them; returns where the next thing may begin. The line must lie along the plot.
double draw_x_axis(Svg& svg, const Axis& axis, const AxisLine& line, const Box& plot);

// Grid lines, labels left of the plot, and the title above them, level with `title_y`.
void draw_y_axis(Svg& svg, const Axis& axis, const AxisLine& line, const Box& plot, double title_y);

// Counts what could not be drawn, for the description to say so.
struct LeftOut {
  std::size_t values = 0;

  // A sentence with a space before it, or nothing.
  [[nodiscard]] std::string text() const;
};

}  // namespace assay::plot
