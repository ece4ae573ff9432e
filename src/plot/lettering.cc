#include "plot/lettering.h"

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
  const double ellipsis = character_width(kEllipsis);
  std::size_t kept = 0;  // bytes that leave room for an ellipsis
  double taken = 0;      // heights of the font, added up as text_width() does
  for (std::size_t i = 0; i < shown.size();) {
    const std::size_t bytes = base::first_utf8_char(std::string_view(shown).substr(i)).size;
    taken += character_width(std::string_view(shown).substr(i, bytes));
    if (taken * size > width) return shown.substr(0, kept) + std::string(kEllipsis);
    i += bytes;
    if ((taken + ellipsis) * size <= width) kept = i;
  }
  return shown;
}

}  // namespace assay::plot
