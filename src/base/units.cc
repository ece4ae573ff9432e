// Quantities as people read them; units_parse.cc is the way back.
#include "base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

namespace assay::base {
namespace {

struct Step {
  std::string_view name;
  double ratio;  // how many of this unit make one of the next; 0 for the last
};

// Three significant digits for a magnitude that is neither negative nor infinite.
std::string three_digits(double value) {
  if (value == 0) return "0";
  if (value < 0.001) return fmt::format("{:.2e}", value);
  if (value < 0.9995) return fmt::format("{:#.3g}", value);
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  if (value < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.2e}", value);
}

double as_shown(double value) {
  const std::string text = three_digits(value);
  double shown = 0;
  std::from_chars(text.data(), text.data() + text.size(), shown);
  return shown;
}

// Climbs to the largest unit of which there is at least one. What decides is the rounded number:
// 59.97 s would read "60.0 s", so it is "1.00 min".
std::string in_fitting_unit(double value, std::span<const Step> steps, std::string_view gap) {
  if (!std::isfinite(value)) return fmt::format("{}{}{}", value, gap, steps.front().name);
  double magnitude = std::abs(value);
  std::size_t i = 0;
  while (i + 1 < steps.size() && as_shown(magnitude) >= steps[i].ratio) {
    magnitude = std::max(magnitude / steps[i].ratio, 1.0);
    ++i;
  }
  return fmt::format("{}{}{}{}", value < 0 ? "-" : "", three_digits(magnitude), gap, steps[i].name);
}

constexpr Step kByteSteps[] = {{"B", 1024},   {"KiB", 1024}, {"MiB", 1024}, {"GiB", 1024},
                               {"TiB", 1024}, {"PiB", 1024}, {"EiB", 0}};
constexpr Step kByteRateSteps[] = {{"B/s", 1e3},  {"KB/s", 1e3}, {"MB/s", 1e3}, {"GB/s", 1e3},
                                   {"TB/s", 1e3}, {"PB/s", 1e3}, {"EB/s", 0}};
constexpr Step kFlopSteps[] = {{"FLOP", 1e3},  {"KFLOP", 1e3}, {"MFLOP", 1e3},
                               {"GFLOP", 1e3}, {"TFLOP", 1e3}, {"PFLOP", 1e3},
                               {"EFLOP", 1e3}, {"ZFLOP", 1e3}, {"YFLOP", 0}};
constexpr Step kFlopRateSteps[] = {{"FLOP/s", 1e3},  {"KFLOP/s", 1e3}, {"MFLOP/s", 1e3},
                                   {"GFLOP/s", 1e3}, {"TFLOP/s", 1e3}, {"PFLOP/s", 1e3},
                                   {"EFLOP/s", 1e3}, {"ZFLOP/s", 0}};
constexpr Step kWattSteps[] = {{"W", 1e3}, {"kW", 1e3}, {"MW", 1e3}, {"GW", 0}};
constexpr Step kNanosecondSteps[] = {{"ns", 1e3}, {"µs", 1e3}, {"ms", 1e3}, {"s", 60},
                                     {"min", 60}, {"h", 24},   {"d", 0}};
constexpr Step kCountSteps[] = {{"", 1e3}, {"K", 1e3}, {"M", 1e3}, {"B", 1e3}, {"T", 0}};

std::uint64_t magnitude_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;  // also right for the smallest value, which has no negation
}

}  // namespace

std::string to_text(Bytes value) {
  // Below a kibibyte the count is exact; "1.00 B" would suggest that it was not.
  if (magnitude_of(value.count()) < 1024) return fmt::format("{} B", value.count());
  return in_fitting_unit(static_cast<double>(value.count()), kByteSteps, " ");
}

std::string to_text(Seconds value) {
  if (value.count() == 0) return "0 s";
  if (!std::isfinite(value.count())) return fmt::format("{} s", value.count());
  return in_fitting_unit(value.count() * 1e9, kNanosecondSteps, " ");
}

std::string to_text(Flops value) {
  return in_fitting_unit(value.count(), kFlopSteps, " ");
}

std::string to_text(BytesPerSecond value) {
  return in_fitting_unit(value.count(), kByteRateSteps, " ");
}

std::string to_text(FlopsPerSecond value) {
  return in_fitting_unit(value.count(), kFlopRateSteps, " ");
}

std::string to_text(Watts value) {
  return in_fitting_unit(value.count(), kWattSteps, " ");
}

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", magnitude_of(value));
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return value < 0 ? "-" + text : text;
}

std::string short_count(std::int64_t value) {
  if (magnitude_of(value) < 1000) return fmt::format("{}", value);
  return in_fitting_unit(static_cast<double>(value), kCountSteps, "");
}

}  // namespace assay::base
