#include "plot/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/units.h"

namespace assay::plot {
namespace {

constexpr int kShortDigits = 3;
constexpr int kMostDigits = 15;  // a double has no more

// "1.500" -> "1.5", "20" stays.
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

double rounded_to(double value, int digits) {
  return std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
}

bool is_exact(double value, int digits) {
  return std::abs(rounded_to(value, digits) - value) <= 1e-9 * std::abs(value);
}

// Whether rounding moves no tick by a share of the way to its neighbour that could be seen.
bool tells_apart(std::span<const double> ticks, int digits) {
  constexpr double kInvisible = 0.01;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    double gap = std::numeric_limits<double>::infinity();
    if (i > 0) gap = ticks[i] - ticks[i - 1];
    if (i + 1 < ticks.size()) gap = std::min(gap, ticks[i + 1] - ticks[i]);
    if (std::abs(rounded_to(ticks[i], digits) - ticks[i]) > kInvisible * gap) return false;
  }
  return true;
}

}  // namespace

std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (value == 0) return "0";
  // The exponent of the rounded value: 999.9 in three digits is 1.00e3.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -3 || exponent >= 15) {
    return fmt::format("{}e{}", without_trailing_zeros(scientific.substr(0, e)), exponent);
  }
  constexpr std::array<std::string_view, 5> kThousands = {"", "k", "M", "B", "T"};
  const int thousands = std::max(0, exponent) / 3;
  const double scaled = rounded_to(value, digits) / std::pow(1000.0, thousands);
  const int decimals = std::max(0, digits - 1 - (exponent - 3 * thousands));
  return without_trailing_zeros(fmt::format("{:.{}f}", scaled, decimals)) +
         std::string(kThousands[static_cast<std::size_t>(thousands)]);
}

std::vector<std::string> tick_labels(std::span<const double> ticks) {
  const auto all = [&](auto holds) { return std::all_of(ticks.begin(), ticks.end(), holds); };
  // Powers of two are known by all their digits, not as 2.05k.
  constexpr double kWrittenOut = 1e8;
  const bool is_short = all([](double tick) { return is_exact(tick, kShortDigits); });
  const bool is_whole =
      all([](double tick) { return std::abs(tick) < kWrittenOut && std::nearbyint(tick) == tick; });
  std::vector<std::string> labels;
  if (!is_short && is_whole) {
    for (const double tick : ticks) {
      labels.push_back(base::grouped(static_cast<std::int64_t>(tick)));
    }
    return labels;
  }
  int digits = kShortDigits;
  while (digits < kMostDigits && !tells_apart(ticks, digits)) ++digits;
  for (const double tick : ticks) labels.push_back(short_number(tick, digits));
  return labels;
}

}  // namespace assay::plot
