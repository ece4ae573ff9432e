// The look of all charts: colours that colour-blind people can tell apart, for light and dark
// screens and paper. Marks have classes; one style sheet defines them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::plot {

inline constexpr std::size_t kColours = 8;

// Classes of the n-th series: a filled area, text on it, a line.
std::string fill_class(std::size_t series);
std::string on_fill_class(std::size_t series);
std::string stroke_class(std::size_t series);

// Of the n-th reference line or band (levels.h).
std::string level_class(std::size_t index);
std::string level_band_class(std::size_t index);

// Of the <svg> element; the sheet's rules apply inside it only.
inline constexpr std::string_view kDrawingClass = "assay-plot";

const std::string& style_sheet();

}  // namespace assay::plot
