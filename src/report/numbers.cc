#include "report/numbers.h"

#include <fmt/format.h>

#include <cmath>

#include "base/decimal.h"
#include "base/units.h"
#include "compare/effect.h"

namespace assay::report {
namespace {

constexpr double kCountable = 9e18;  // fits into 64 bits

}  // namespace

std::string figure(double value) {
  if (!std::isfinite(value)) return "—";
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size < 1e-5 || size >= 1e15) {
    const std::string scientific = fmt::format("{:.3e}", value);
    const std::size_t e = scientific.find('e');
    return fmt::format("{}e{}", base::without_trailing_zeros(scientific.substr(0, e)),
                       std::stoi(scientific.substr(e + 1)));
  }
  // The digits after the point that four significant ones leave; none from 1,000 on.
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  if (before > 4 || size >= 999.95) return base::grouped(std::llround(value));
  return base::without_trailing_zeros(fmt::format("{:.{}f}", value, 4 - before));
}

std::string signed_figure(double value) {
  return (value < 0 ? "" : "+") + figure(value);
}

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

std::string signed_percent(double percent) {
  const bool large = std::abs(percent) >= 1000;
  return large ? signed_figure(percent) + " %" : fmt::format("{:+.2f} %", percent);
}

std::string ratio_text(double percent, bool is_time) {
  return compare::ratio_text(1 + percent / 100, is_time ? "slower" : "as much",
                             is_time ? "faster" : "less");
}

}  // namespace assay::report
