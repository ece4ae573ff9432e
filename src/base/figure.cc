#include "base/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/decimal.h"
#include "base/units.h"

namespace assay::base {
namespace {

constexpr double kSmallest = 1e-5;  // below it, and from kLargest on, with an exponent
constexpr double kLargest = 1e15;

std::string with_exponent(double value) {
  const std::string scientific = fmt::format("{:.3e}", value);
  const std::size_t e = scientific.find('e');
  return fmt::format("{}e{}", without_trailing_zeros(scientific.substr(0, e)),
                     std::stoi(scientific.substr(e + 1)));
}

}  // namespace

std::string figure(double value) {
  if (!std::isfinite(value)) return "—";
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size < kSmallest || size >= kLargest) return with_exponent(value);
  // The digits after the point that four significant ones leave; none from 1,000 on.
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  if (before > 4 || size >= 999.95) return grouped(std::llround(value));
  return without_trailing_zeros(fmt::format("{:.{}f}", value, 4 - before));
}

std::string signed_figure(double value) {
  return (value < 0 ? "" : "+") + figure(value);
}

std::string exact_figure(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || value == 0) return figure(value);
  if (size < kSmallest || size >= kLargest) return with_exponent(value);
  std::array<char, 64> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), size, std::chars_format::fixed);
  const std::string text(digits.data(), end.ptr);
  const std::size_t point = std::min(text.find('.'), text.size());
  return (value < 0 ? "-" : "") + grouped(std::stoll(text.substr(0, point))) + text.substr(point);
}

std::string signed_percent(double percent) {
  const bool large = std::abs(percent) >= 1000;
  return large ? signed_figure(percent) + " %" : fmt::format("{:+.2f} %", percent);
}

}  // namespace assay::base
