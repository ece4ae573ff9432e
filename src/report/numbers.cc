#include "report/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/units.h"
#include "compare/effect.h"

namespace assay::report {
namespace {

constexpr double kCountable = 9e18;  // fits into 64 bits

}  // namespace

std::string amount(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "—";
  const double size = std::abs(value);
  if (unit == "s") return (value < 0 ? "-" : "") + base::to_text(base::Seconds(size));
  if (unit == "bytes" && size < kCountable) return base::to_text(base::Bytes(std::llround(value)));
  if (unit == "fraction") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "J" && size >= 1e6) return figure(value / 1e6) + " MJ";
  if (unit == "J" && size >= 1e3) return figure(value / 1e3) + " kJ";
  return unit.empty() ? figure(value) : fmt::format("{} {}", figure(value), unit);
}

std::string dollars_text(double value) {
  return value < 1000 ? fmt::format("${:.2f}", value) : "$" + base::grouped(std::llround(value));
}

std::string limit_text(base::Seconds limit) {
  const std::string text = base::to_text(limit);
  const std::size_t unit = std::min(text.find(' '), text.size());
  return base::without_trailing_zeros(text.substr(0, unit)) + text.substr(unit);
}

std::string ratio_text(double percent, bool is_time) {
  return compare::ratio_text(1 + percent / 100, is_time ? "slower" : "as much",
                             is_time ? "faster" : "less");
}

}  // namespace assay::report
