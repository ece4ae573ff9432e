#include "plot/labels.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "plot/lettering.h"

namespace assay::plot {

bool Box::overlaps(const Box& other) const {
  return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
}

bool Box::inside(const Box& other) const {
  return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
}

bool Room::is_free(const Box& box) const {
  return box.inside(all_) && std::none_of(taken_.begin(), taken_.end(),
                                          [&](const Box& taken) { return taken.overlaps(box); });
}

std::optional<LabelPlace> Room::place(double x, double y, double radius, std::string_view text,
                                      double size) {
  constexpr double kGap = 4;
  constexpr double kAscent = 0.78;  // of a line's height, above what letters stand on
  const double width = text_width(text, size);
  const double far = radius + kGap;
  const double near = far * 0.6;
  // Where the box's upper left corner may be.
  const std::array<LabelPlace, 8> corners = {{
      {x + far, y - size / 2},              // right
      {x + near, y - near - size},          // above, to the right
      {x + near, y + near},                 // below, to the right
      {x - width / 2, y - far - size},      // above
      {x - width / 2, y + far},             // below
      {x - far - width, y - size / 2},      // left
      {x - near - width, y - near - size},  // above, to the left
      {x - near - width, y + near},         // below, to the left
  }};
  for (const LabelPlace& corner : corners) {
    const Box box{corner.x, corner.y, corner.x + width, corner.y + size};
    if (!is_free(box)) continue;
    take(box);
    return LabelPlace{corner.x, corner.y + kAscent * size};
  }
  return std::nullopt;
}

std::vector<double> spread(std::vector<double> wanted, double apart, double top, double bottom) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  // Down from the top until none is on another, then up from the bottom where they ran over.
  double above = top - apart;
  for (const std::size_t i : order) above = wanted[i] = std::max(wanted[i], above + apart);
  double below = bottom + apart;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    below = wanted[*i] = std::min(wanted[*i], below - apart);
  }
  return wanted;
}

}  // namespace assay::plot
