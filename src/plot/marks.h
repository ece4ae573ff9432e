// The marks that represent data: markers, error bars, hatched areas, and the legend that explains
// them. Series never differ by colour alone: lines and points have markers, areas are hatched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plot/labels.h"
#include "plot/xml.h"

namespace assay::plot {

inline constexpr double kMarkerRadius = 4;

// The marker of the n-th series at a point; an outline unless `filled`.
void draw_marker(XmlWriter& svg, std::size_t series, double x, double y,
                 double radius = kMarkerRadius, bool filled = true);

// From one end of an interval to the other, vertical or horizontal, with caps.
void draw_error_bar(XmlWriter& svg, std::size_t series, Point from, Point to);

// An area with the colour and hatching of the n-th series.
void draw_area(XmlWriter& svg, std::size_t series, const Box& box);

enum class LegendMark : std::uint8_t {
  kArea,
  kMarker,
  kBand,
  kErrorBar,
  kReference,
  kFront,
  kLevel,
  kLevelBand
};

struct LegendEntry {
  LegendMark sample = LegendMark::kArea;
  std::size_t series = 0;
  std::string name;
};

inline constexpr double kSampleWidth = 16;

// Draws a sample of the mark, vertically centred on y.
void draw_sample(XmlWriter& svg, const LegendEntry& entry, double x, double y);

// Draws entries in as many rows as needed; returns the y position below them.
double draw_legend(XmlWriter& svg, const std::vector<LegendEntry>& entries, double left, double top,
                   double width);

}  // namespace assay::plot
