#include "plot/labels.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "base/utf8.h"

namespace assay::plot {
namespace {

constexpr std::string_view kEllipsis = "…";

// Widths of one character in heights of the font, after DejaVu Sans, one of the widest.
double character_width(std::string_view bytes) {
  constexpr std::string_view kThin = "ijlI.,:;'|!` ";
  constexpr std::string_view kNarrow = "frt()[]{}-/\\\"J";
  constexpr std::string_view kWide = "mwMW%@";
  if (bytes.size() > 1) return 0.7 * static_cast<double>(base::display_width(bytes));
  const char c = bytes.front();
  if (kThin.find(c) != std::string_view::npos) return 0.33;
  if (kNarrow.find(c) != std::string_view::npos) return 0.42;
  if (kWide.find(c) != std::string_view::npos) return 0.97;
  return base::is_upper(c) || c == '+' || c == '=' || c == '<' || c == '>' ? 0.76 : 0.63;
}

}  // namespace

double text_width(std::string_view text, double size) {
  const std::string shown = base::printable(text);
  double width = 0;
  for (std::string_view rest = shown; !rest.empty();) {
    const std::size_t bytes = base::first_utf8_char(rest).size;
    width += character_width(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  return width * size;
}

std::string fitted(std::string_view text, double size, double width) {
  std::string shown = base::printable(text);
  if (text_width(shown, size) <= width) return shown;
  std::vector<std::string_view> characters;
  for (std::string_view rest = shown; !rest.empty();) {
    const std::size_t bytes = base::first_utf8_char(rest).size;
    characters.push_back(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  // From both ends in turn, beginning with the first, for as long as there is space.
  double taken = character_width(kEllipsis) * size;
  std::string_view head;
  std::string_view tail;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const bool front = i % 2 == 0;
    const std::string_view next =
        front ? characters[i / 2] : characters[characters.size() - 1 - i / 2];
    taken += character_width(next) * size;
    if (taken > width - 1e-9) break;  // widths may be added up in another order
    if (front) {
      head = std::string_view(shown).substr(0, head.size() + next.size());
    } else {
      tail = std::string_view(shown).substr(shown.size() - tail.size() - next.size());
    }
  }
  return std::string(head) + std::string(kEllipsis) + std::string(tail);
}

bool Box::overlaps(const Box& other) const {
  return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
}

bool Box::inside(const Box& other) const {
  return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
}

bool FreeSpace::is_free(const Box& box) const {
  return box.inside(all_) && std::none_of(taken_.begin(), taken_.end(),
                                          [&](const Box& taken) { return taken.overlaps(box); });
}

std::optional<Point> FreeSpace::place(double x, double y, double radius, std::string_view text,
                                      double size) {
  constexpr double kGap = 4;
  constexpr double kAscent = 0.78;  // of a line's height, above what letters stand on
  const double width = text_width(text, size);
  const double far = radius + kGap;
  const double near = far * 0.6;
  // Where the box's upper left corner may be.
  const std::array<Point, 8> corners = {{
      {x + far, y - size / 2},              // right
      {x + near, y - near - size},          // above, to the right
      {x + near, y + near},                 // below, to the right
      {x - width / 2, y - far - size},      // above
      {x - width / 2, y + far},             // below
      {x - far - width, y - size / 2},      // left
      {x - near - width, y - near - size},  // above, to the left
      {x - near - width, y + near},         // below, to the left
  }};
  for (const Point& corner : corners) {
    const Box box{corner.x, corner.y, corner.x + width, corner.y + size};
    if (!is_free(box)) continue;
    take(box);
    return Point{corner.x, corner.y + kAscent * size};
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
