// Text in a drawing: how wide it is, how it is cut, and where it covers nothing. A drawing does not
// know the reader's font, so widths are those of a wide one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plot {

// Heights of letters in units of the drawing; style.cc has the same.
inline constexpr double kTitleSize = 16;
inline constexpr double kTextSize = 12;
inline constexpr double kSmallSize = 11;
// How much wider bold text is.
inline constexpr double kBold = 1.15;

double text_width(std::string_view text, double size);

// The text if it fits, else with an ellipsis in its middle: names, paths and commands differ at
// either end.
std::string fitted(std::string_view text, double size, double width);

// Of text: starts at x and stands on y.
struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] bool overlaps(const Box& other) const;
  [[nodiscard]] bool inside(const Box& other) const;
};

// Which parts of a box are still free for labels.
class FreeSpace {
 public:
  explicit FreeSpace(const Box& all) : all_(all) {}

  void take(const Box& box) { taken_.push_back(box); }
  [[nodiscard]] bool is_free(const Box& box) const;

  // The first free place around a mark of the given radius, right of it by preference, which is
  // then taken. Nothing if there is none: no label is better than overlapping ones.
  std::optional<Point> place(double x, double y, double radius, std::string_view text, double size);

 private:
  Box all_;
  std::vector<Box> taken_;
};

// Heights for labels in one column, near the wanted ones: at least `apart` from each other, between
// top and bottom as far as there is space, in the order of the wanted ones.
std::vector<double> spread(std::vector<double> wanted, double apart, double top, double bottom);

}  // namespace assay::plot
