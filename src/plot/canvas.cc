#include "plot/canvas.h"

#include <fmt/format.h>

#include <utility>

#include "plot/labels.h"
#include "plot/style.h"

namespace assay::plot {

Drawing::Drawing(std::string title, std::string description, double width, double height,
                 XmlWriter body)
    : title_(std::move(title)),
      description_(std::move(description)),
      width_(width),
      height_(height),
      body_(std::move(body)) {}

void Drawing::write(XmlWriter& out, bool with_style) const {
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"class", kDrawingClass},
                   {"viewBox", fmt::format("0 0 {} {}", coordinate(width_), coordinate(height_))},
                   {"width", "100%"},
                   {"role", "img"}});
  out.element("title", {}, title_);
  out.element("desc", {}, description_);
  if (with_style) out.verbatim_element("style", {}, style_sheet());
  out.element("rect", {{"class", "fill-paper"}, {"width", width_}, {"height", height_}});
  out.append(body_);
  out.close();
}

std::string Drawing::svg() const {
  XmlWriter out;
  write(out, true);
  return out.text();
}

void Drawing::write_to(XmlWriter& document) const {
  write(document, false);
}

double Canvas::draw_heading(const Heading& heading) {
  constexpr double kBelow = 12;
  double y = kMargin;
  if (!heading.title.empty()) {
    y += kTitleSize;
    svg.element("text", {{"class", "title fill-ink"}, {"x", kMargin}, {"y", y}},
                fitted(heading.title, kTitleSize * kBold, inner_width()));
  }
  if (!heading.subtitle.empty()) {
    y += kTextSize + 6;
    svg.element("text", {{"class", "fill-soft"}, {"x", kMargin}, {"y", y}},
                fitted(heading.subtitle, kTextSize, inner_width()));
  }
  return y + kBelow;
}

Drawing Canvas::finish(const Heading& heading, std::string description, double height) && {
  return {heading.title, std::move(description), width, height, std::move(svg)};
}

std::string Omitted::text() const {
  if (values == 0) return {};
  return fmt::format(
      " Left out: {} {} that the axes cannot show (not a finite number, below zero in a bar, or "
      "not above zero on a logarithmic axis).",
      values, values == 1 ? "value" : "values");
}

}  // namespace assay::plot
