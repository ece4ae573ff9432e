// Consumption: energy and mean clock between any two moments, interpolated between readings. After
// the last reading energy is extrapolated, so that successive calls add up to the counter's value.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/meter.h"

namespace assay::machine {

struct PowerUse {
  double seconds = 0;
  std::optional<double> joules;
  std::optional<double> clock_mhz;  // mean
};

class Consumption {
 public:
  explicit Consumption(std::int64_t now_ns) : taken_ns_(now_ns) {}

  void add(std::int64_t now_ns, const MeterReading& reading);
  // Consumption since the last call.
  PowerUse take(std::int64_t now_ns);

 private:
  // If the device has no energy counter, energy is the integral of its power.
  [[nodiscard]] std::optional<double> joules_at(std::int64_t now_ns,
                                                const MeterReading& reading) const;
  [[nodiscard]] double interpolated_joules(std::int64_t now_ns) const;

  struct Point {
    std::int64_t ns = 0;
    double joules = 0;
    std::optional<double> watts;
  };
  std::optional<Point> last_;
  std::optional<double> slope_;  // watts, at the end of the line
  std::int64_t taken_ns_;
  double taken_joules_ = 0;
  double clock_sum_ = 0;
  int clocks_ = 0;
  std::optional<double> last_clock_;
};

}  // namespace assay::machine
