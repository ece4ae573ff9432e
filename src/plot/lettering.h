// How much room text takes. A drawing does not know the reader's font, so widths are those of a
// wide one: what is said to fit, fits.
#pragma once

#include <string>
#include <string_view>

namespace assay::plot {

// Heights of letters in units of the drawing.
inline constexpr double kTitleSize = 16;
inline constexpr double kTextSize = 12;
inline constexpr double kSmallSize = 11;
// Bold text is so many times as wide.
inline constexpr double kBold = 1.15;

double text_width(std::string_view text, double size);

// The text if it is no wider, else its beginning with an ellipsis.
std::string fitted(std::string_view text, double size, double width);

}  // namespace assay::plot
