// The look of all charts: colours that colour-blind readers can distinguish, for light and dark
// screens and paper. Marks have CSS classes, defined by one style sheet.
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

// Classes of the n-th reference line or band (levels.h).
std::string level_class(std::size_t index);
std::string level_band_class(std::size_t index);

// Class of the <svg> element; the style sheet's rules apply only inside it.
inline constexpr std::string_view kDrawingClass = "assay-plot";

const std::string& style_sheet();

}  // namespace assay::plot
