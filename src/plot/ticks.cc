#include "plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/decimal.h"
#include "base/units.h"

namespace assay::plot {
namespace {

constexpr std::array<int, 3> kMantissas = {1, 2, 5};
// A value this close to a tick, in steps, is on it: 0.3 / 0.1 is a little less than 3.
constexpr double kOnTick = 1e-9;

// 10^e without the error of pow(10, -e), for i / 10 is the double nearest to i tenths.
double times_power_of_ten(double value, int exponent) {
  return exponent >= 0 ? value * std::pow(10.0, exponent) : value / std::pow(10.0, -exponent);
}

std::int64_t last_at_or_below(double steps) {
  return static_cast<std::int64_t>(std::floor(steps + kOnTick));
}

std::int64_t first_at_or_above(double steps) {
  return static_cast<std::int64_t>(std::ceil(steps - kOnTick));
}

std::vector<double> linear_ticks(double low, double high, std::size_t most) {
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (magnitude < kSmallestShown) return linear_ticks(0, 1, most);
  // Below this, neighbouring ticks would differ by little more than rounding.
  constexpr double kNarrowest = 1e-9;
  if (high - low < kNarrowest * magnitude) {
    constexpr double kWidened = 0.1;
    return linear_ticks(low - kWidened * magnitude, high + kWidened * magnitude, most);
  }
  int exponent = static_cast<int>(std::floor(std::log10((high - low) / static_cast<double>(most))));
  for (;; ++exponent) {
    for (const int mantissa : kMantissas) {
      const double step = times_power_of_ten(mantissa, exponent);
      const std::int64_t first = last_at_or_below(low / step);
      const std::int64_t last = first_at_or_above(high / step);
      if (last - first + 1 > static_cast<std::int64_t>(most)) continue;
      std::vector<double> ticks;
      for (std::int64_t i = first; i <= last; ++i) {
        ticks.push_back(times_power_of_ten(static_cast<double>(i * mantissa), exponent));
      }
      return ticks;
    }
  }
}

// The ticks a logarithmic axis can have, numbered: every `stride`-th power of the base, or, with
// stride 0, 1, 2, 5, 10, 20, …
struct Ladder {
  Scale scale = Scale::kLog10;
  int stride = 0;

  [[nodiscard]] double at(std::int64_t rung) const {
    if (stride > 0) {
      const auto power = static_cast<int>(rung) * stride;
      return scale == Scale::kLog2 ? std::ldexp(1.0, power) : times_power_of_ten(1, power);
    }
    const std::int64_t decade = rung >= 0 ? rung / 3 : -((2 - rung) / 3);
    return times_power_of_ten(kMantissas[static_cast<std::size_t>(rung - 3 * decade)],
                              static_cast<int>(decade));
  }

  // The last rung at or below the value.
  [[nodiscard]] std::int64_t below(double value) const {
    const double logarithm = scale == Scale::kLog2 ? std::log2(value) : std::log10(value);
    const double rungs = stride > 0 ? logarithm / stride : logarithm * 3;
    auto rung = static_cast<std::int64_t>(std::floor(rungs)) + 1;
    while (at(rung) > value * (1 + kOnTick)) --rung;
    return rung;
  }
};

std::vector<double> logarithmic_ticks(double low, double high, Scale scale, std::size_t most) {
  Ladder ladder{.scale = scale, .stride = scale == Scale::kLog2 ? 1 : 0};
  for (;; ++ladder.stride) {
    std::int64_t first = ladder.below(low);
    std::int64_t last = ladder.below(high);
    if (ladder.at(last) < high * (1 - kOnTick)) ++last;
    if (first == last) {
      --first;
      ++last;
    }
    if (last - first + 1 > static_cast<std::int64_t>(most)) continue;
    std::vector<double> ticks;
    for (std::int64_t rung = first; rung <= last; ++rung) ticks.push_back(ladder.at(rung));
    return ticks;
  }
}

constexpr int kShortDigits = 3;
constexpr int kMostDigits = 15;  // a double has no more

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

std::vector<double> ticks_over(double low, double high, Scale scale, std::size_t most) {
  const std::size_t allowed = std::max(most, kFewestTicks);
  return scale == Scale::kLinear ? linear_ticks(low, high, allowed)
                                 : logarithmic_ticks(low, high, scale, allowed);
}

std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (value == 0) return "0";
  // The exponent of the rounded value: 999.9 in three digits is 1.00e3.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -3 || exponent >= 15) {
    return fmt::format("{}e{}", base::without_trailing_zeros(scientific.substr(0, e)), exponent);
  }
  constexpr std::array<std::string_view, 5> kThousands = {"", "k", "M", "B", "T"};
  const int thousands = std::max(0, exponent) / 3;
  const double scaled = rounded_to(value, digits) / std::pow(1000.0, thousands);
  const int decimals = std::max(0, digits - 1 - (exponent - 3 * thousands));
  return base::without_trailing_zeros(fmt::format("{:.{}f}", scaled, decimals)) +
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
