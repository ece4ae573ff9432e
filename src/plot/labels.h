// Text in a drawing: its width, how it is shortened, and where it covers nothing. The reader's font
// is unknown, so the widths of a wide font are used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plot {

// Font sizes in units of the drawing; must match style.cc.
inline constexpr double kTitleSize = 16;
inline constexpr double kTextSize = 12;
inline constexpr double kSmallSize = 11;
// How much wider bold text is.
inline constexpr double kBold = 1.15;

double text_width(std::string_view text, double size);

// The text if it fits, else with an ellipsis in the middle: names, paths and commands differ at
// their ends.
std::string fitted(std::string_view text, double size, double width);

// A position; for text, the start of its baseline.
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

// Keeps track of which parts of a box are still free for labels.
class FreeSpace {
 public:
  explicit FreeSpace(const Box& all) : all_(all) {}

  void take(const Box& box) { taken_.push_back(box); }
  [[nodiscard]] bool is_free(const Box& box) const;

  // Takes the first free position around a mark of the given radius, preferably to its right.
  // Nothing if there is none: no label is better than overlapping ones.
  std::optional<Point> place(double x, double y, double radius, std::string_view text, double size);

 private:
  Box all_;
  std::vector<Box> taken_;
};

// Heights for labels in one column, close to the wanted ones: at least `apart` from each other,
// between top and bottom as far as space permits, in the same order.
std::vector<double> spread(std::vector<double> wanted, double apart, double top, double bottom);

}  // namespace assay::plot
