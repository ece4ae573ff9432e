// Quantities as text and back. Parsing ignores the locale and is strict: a unit is never guessed,
// because a wrong guess between GB, GiB and Gb is a plan that is wrong by 7 % or by a factor of 8.
#include "base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "base/decimal.h"

namespace assay::base {
namespace {

struct ScaledUnit {
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
std::string in_fitting_unit(double value, std::span<const ScaledUnit> units, std::string_view gap) {
  if (!std::isfinite(value)) return fmt::format("{}{}{}", value, gap, units.front().name);
  double magnitude = std::abs(value);
  std::size_t i = 0;
  while (i + 1 < units.size() && as_shown(magnitude) >= units[i].ratio) {
    magnitude = std::max(magnitude / units[i].ratio, 1.0);
    ++i;
  }
  return fmt::format("{}{}{}{}", value < 0 ? "-" : "", three_digits(magnitude), gap, units[i].name);
}

constexpr ScaledUnit kByteUnits[] = {{"B", 1024},   {"KiB", 1024}, {"MiB", 1024}, {"GiB", 1024},
                                     {"TiB", 1024}, {"PiB", 1024}, {"EiB", 0}};
constexpr ScaledUnit kByteRateUnits[] = {{"B/s", 1e3},  {"KB/s", 1e3}, {"MB/s", 1e3}, {"GB/s", 1e3},
                                         {"TB/s", 1e3}, {"PB/s", 1e3}, {"EB/s", 0}};
constexpr ScaledUnit kFlopUnits[] = {{"FLOP", 1e3},  {"KFLOP", 1e3}, {"MFLOP", 1e3},
                                     {"GFLOP", 1e3}, {"TFLOP", 1e3}, {"PFLOP", 1e3},
                                     {"EFLOP", 1e3}, {"ZFLOP", 1e3}, {"YFLOP", 0}};
constexpr ScaledUnit kFlopRateUnits[] = {{"FLOP/s", 1e3},  {"KFLOP/s", 1e3}, {"MFLOP/s", 1e3},
                                         {"GFLOP/s", 1e3}, {"TFLOP/s", 1e3}, {"PFLOP/s", 1e3},
                                         {"EFLOP/s", 1e3}, {"ZFLOP/s", 0}};
constexpr ScaledUnit kWattUnits[] = {{"W", 1e3}, {"kW", 1e3}, {"MW", 1e3}, {"GW", 0}};
constexpr ScaledUnit kNanosecondUnits[] = {{"ns", 1e3}, {"µs", 1e3}, {"ms", 1e3}, {"s", 60},
                                           {"min", 60}, {"h", 24},   {"d", 0}};
constexpr ScaledUnit kCountUnits[] = {{"", 1e3}, {"K", 1e3}, {"M", 1e3}, {"B", 1e3}, {"T", 0}};

std::uint64_t magnitude_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;  // also right for the smallest value, which has no negation
}

// Parsing.

struct Factor {
  std::string_view name;
  double value;
};

// What a kind of quantity is called and how it may be written: any prefix before any suffix.
struct Grammar {
  std::string_view quantity;
  std::string_view expected;  // ends an error message
  std::span<const Factor> prefixes;
  std::span<const Factor> suffixes;
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi, kPi = kTi * kKi;
constexpr Factor kDecimalAndBinary[] = {{"", 1},     {"K", 1e3},  {"k", 1e3},  {"M", 1e6},
                                        {"G", 1e9},  {"T", 1e12}, {"P", 1e15}, {"Ki", kKi},
                                        {"Mi", kMi}, {"Gi", kGi}, {"Ti", kTi}, {"Pi", kPi}};
constexpr Factor kDecimal[] = {{"", 1},    {"K", 1e3},  {"k", 1e3},  {"M", 1e6},
                               {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
constexpr Factor kPower[] = {{"", 1}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}};
constexpr Factor kNoPrefix[] = {{"", 1}};

constexpr Factor kByte[] = {{"B", 1}};
// Bits come after bytes so that "GB/s" is never read as a prefix and "b/s".
constexpr Factor kByteRate[] = {{"B/s", 1}, {"b/s", 0.125}, {"bit/s", 0.125}, {"bps", 0.125}};
constexpr Factor kFlopRate[] = {{"FLOP/s", 1}, {"FLOPS", 1}, {"FLOPs", 1}};
constexpr Factor kWatt[] = {{"W", 1}};
constexpr Factor kTime[] = {{"d", 86400}, {"h", 3600},  {"min", 60},  {"ms", 1e-3},
                            {"us", 1e-6}, {"µs", 1e-6}, {"μs", 1e-6},  // both Unicode mus
                            {"ns", 1e-9}, {"s", 1}};

constexpr Grammar kBytes = {
    "size", "a number and one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, for example 80GiB",
    kDecimalAndBinary, kByte};
constexpr Grammar kBytesPerSecond = {
    "bandwidth",
    "a number and a unit such as MB/s, GB/s, TB/s or, in bits, Gb/s, for example 450GB/s",
    kDecimalAndBinary, kByteRate};
constexpr Grammar kFlopsPerSecond = {
    "compute rate", "a number and one of GFLOP/s, TFLOP/s, PFLOP/s, for example 989 TFLOP/s",
    kDecimal, kFlopRate};
constexpr Grammar kSeconds = {
    "duration", "a number and one of d, h, min, s, ms, us, ns, for example 1.5h", kNoPrefix, kTime};
constexpr Grammar kWatts = {"power", "a number and one of mW, W, kW, MW, for example 700 W", kPower,
                            kWatt};

tl::unexpected<Error> not_a(const Grammar& grammar, std::string_view text, std::string_view why) {
  return fail(usage_error({}, fmt::format("'{}' is not a {}: {}", text, grammar.quantity, why),
                          fmt::format("expected {}", grammar.expected)));
}

struct Written {
  std::string_view number;
  std::string_view unit;
};

// Splits "80 GiB" into its number and its unit; at most one space may stand between them.
Result<Written> split(const Grammar& grammar, std::string_view text) {
  if (text.empty()) return not_a(grammar, text, "it is empty");
  if (text.front() == '-') return not_a(grammar, text, "it is negative");
  const std::size_t size = decimal_size(text);
  if (size == 0) return not_a(grammar, text, "it does not start with a number");
  std::string_view unit = text.substr(size);
  if (unit.size() > 1 && unit.front() == ' ') unit.remove_prefix(1);
  return Written{text.substr(0, size), unit};
}

std::optional<double> unit_factor(const Grammar& grammar, std::string_view unit) {
  for (const Factor& suffix : grammar.suffixes) {
    if (!unit.ends_with(suffix.name)) continue;
    const std::string_view head = unit.substr(0, unit.size() - suffix.name.size());
    for (const Factor& prefix : grammar.prefixes) {
      if (prefix.name == head) return prefix.value * suffix.value;
    }
  }
  return std::nullopt;
}

Result<double> factor_of(const Grammar& grammar, std::string_view text, std::string_view unit) {
  if (const auto factor = unit_factor(grammar, unit)) return *factor;
  if (unit.empty()) return not_a(grammar, text, "it has no unit");
  return not_a(grammar, text, fmt::format("unknown unit '{}'", unit));
}

Result<double> parse(const Grammar& grammar, std::string_view text) {
  ASSAY_TRY(const Written written, split(grammar, text));
  ASSAY_TRY(const double factor, factor_of(grammar, text, written.unit));
  // In long double, so that 66.9 TFLOP/s is 6.69e13 and not its neighbour.
  long double number = 0;
  const char* end = written.number.data() + written.number.size();
  const auto [stopped, error] = std::from_chars(written.number.data(), end, number);
  const auto value = static_cast<double>(number * static_cast<long double>(factor));
  if (error != std::errc{} || stopped != end || !std::isfinite(value)) {
    return not_a(grammar, text, "it is out of range");
  }
  return value;
}

}  // namespace

std::string to_text(Bytes value) {
  // Below a kibibyte the count is exact; "1.00 B" would suggest that it was not.
  if (magnitude_of(value.count()) < 1024) return fmt::format("{} B", value.count());
  return in_fitting_unit(static_cast<double>(value.count()), kByteUnits, " ");
}

std::string to_text(Seconds value) {
  if (value.count() == 0) return "0 s";
  if (!std::isfinite(value.count())) return fmt::format("{} s", value.count());
  return in_fitting_unit(value.count() * 1e9, kNanosecondUnits, " ");
}

std::string to_text(Flops value) {
  return in_fitting_unit(value.count(), kFlopUnits, " ");
}

std::string to_text(BytesPerSecond value) {
  return in_fitting_unit(value.count(), kByteRateUnits, " ");
}

std::string to_text(FlopsPerSecond value) {
  return in_fitting_unit(value.count(), kFlopRateUnits, " ");
}

std::string to_text(Watts value) {
  return in_fitting_unit(value.count(), kWattUnits, " ");
}

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", magnitude_of(value));
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return value < 0 ? "-" + text : text;
}

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  const std::string number = grouped(count);
  if (count == 1) return fmt::format("{} {}", number, noun);
  return plural.empty() ? fmt::format("{} {}s", number, noun)
                        : fmt::format("{} {}", number, plural);
}

std::string short_count(std::int64_t value) {
  if (magnitude_of(value) < 1000) return fmt::format("{}", value);
  return in_fitting_unit(static_cast<double>(value), kCountUnits, "");
}

Result<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse(kBytesPerSecond, text).map([](double value) { return BytesPerSecond(value); });
}

Result<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse(kFlopsPerSecond, text).map([](double value) { return FlopsPerSecond(value); });
}

Result<Seconds> parse_seconds(std::string_view text) {
  return parse(kSeconds, text).map([](double value) { return Seconds(value); });
}

Result<Watts> parse_watts(std::string_view text) {
  return parse(kWatts, text).map([](double value) { return Watts(value); });
}

Result<Bytes> parse_bytes(std::string_view text) {
  ASSAY_TRY(const Written written, split(kBytes, text));
  double factor = 1;
  if (!written.unit.empty()) {
    ASSAY_TRY(factor, factor_of(kBytes, text, written.unit));
  }
  const auto exact = decimal_times(written.number, static_cast<std::uint64_t>(factor));
  if (!exact) {
    const bool too_large = exact.error() == DecimalError::kTooLarge;
    return not_a(kBytes, text,
                 too_large ? "it does not fit in 64 bits" : "it is not a whole number of bytes");
  }
  return Bytes(*exact);
}

}  // namespace assay::base
