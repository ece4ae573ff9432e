// What every chart looks like: colours that the colour-blind can tell apart, in light, in dark and
// on paper. Marks name classes, and one style sheet inside the drawing says what they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::plot {

inline constexpr std::size_t kColours = 8;

// Classes of the n-th series: a filled area, text upon one, a line, both without any other colour.
std::string fill_class(std::size_t series);
std::string on_fill_class(std::size_t series);
std::string stroke_class(std::size_t series);

// Of the n-th line or band that marks are seen against.
std::string level_class(std::size_t index);
std::string level_band_class(std::size_t index);

// Of the element <svg>; every rule of the sheet is for what is inside it.
inline constexpr std::string_view kDrawingClass = "assay-plot";

const std::string& style_sheet();

}  // namespace assay::plot
