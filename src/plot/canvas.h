// Canvas: the surface a chart is drawn on. Drawing: the finished chart. Every chart is drawn for a
// given width, so that a phone gets its own chart instead of a scaled-down wide one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plot/xml.h"

namespace assay::plot {

struct Heading {
  std::string title;
  std::string subtitle = {};
};

inline constexpr double kPageWidth = 760;    // on a desktop screen and on paper
inline constexpr double kNarrowWidth = 360;  // on a phone
inline constexpr double kMargin = 16;

// A finished chart: a stand-alone file, or a part of a page.
class Drawing {
 public:
  Drawing() = default;
  Drawing(std::string title, std::string description, double width, double height, XmlWriter body);

  // One <svg> with its style sheet.
  [[nodiscard]] std::string svg() const;
  // One <svg> without the style sheet, for a document that contains style_sheet() once.
  void write_to(XmlWriter& document) const;
  // A description as text, for screen readers, Markdown and JSON.
  [[nodiscard]] const std::string& description() const { return description_; }

 private:
  void write(XmlWriter& out, bool with_style) const;

  std::string title_;
  std::string description_;
  double width_ = kPageWidth;
  double height_ = 0;
  XmlWriter body_;
};

struct Canvas {
  explicit Canvas(double its_width) : width(its_width) {}

  double width;
  XmlWriter svg;

  // Whether names go above what they name, because there is no space beside it.
  [[nodiscard]] bool narrow() const { return width < kPageWidth * 2 / 3; }
  // Between the margins.
  [[nodiscard]] double inner_width() const { return width - 2 * kMargin; }
  // The number of ticks for which an axis along the width has space.
  [[nodiscard]] std::size_t ticks(std::size_t when_wide) const {
    return narrow() ? (when_wide + 1) / 2 : when_wide;
  }

  // Draws the heading at the top; returns the y position below it.
  double draw_heading(const Heading& heading);
  [[nodiscard]] Drawing finish(const Heading& heading, std::string description, double height) &&;
};

// Counts values that could not be drawn, for the description.
struct Omitted {
  std::size_t values = 0;

  // A sentence with a leading space, or nothing.
  [[nodiscard]] std::string text() const;
};

}  // namespace assay::plot
