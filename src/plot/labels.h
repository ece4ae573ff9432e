// Room: which parts of a drawing are taken, so that labels go where they cover nothing.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace assay::plot {

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] bool overlaps(const Box& other) const;
  [[nodiscard]] bool inside(const Box& other) const;
};

// A label's text starts at x and stands on y.
struct LabelPlace {
  double x = 0;
  double y = 0;
};

class Room {
 public:
  explicit Room(const Box& all) : all_(all) {}

  void take(const Box& box) { taken_.push_back(box); }
  [[nodiscard]] bool is_free(const Box& box) const;

  // The first free place around a mark of the given radius, right of it by preference; taken from
  // then on. Nothing when all are taken: no label is better than two on each other.
  std::optional<LabelPlace> place(double x, double y, double radius, std::string_view text,
                                  double size);

 private:
  Box all_;
  std::vector<Box> taken_;
};

// Places for labels one below the other that want to be at the given heights: at least `apart`
// from each other, between top and bottom as far as there is room, in the order of what they want.
std::vector<double> spread(std::vector<double> wanted, double apart, double top, double bottom);

}  // namespace assay::plot
