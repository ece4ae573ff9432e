// PowerLog: reads a meter in its own thread, so that asking for the energy used never waits for the
// driver.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "machine/meter.h"

namespace assay::machine {

// Energy and mean clock between two moments.
struct PowerUse {
  double seconds = 0;
  std::optional<double> joules;
  std::optional<double> clock_mhz;  // mean
};

// Interpolates between readings. After the last one energy is extrapolated, so that successive
// calls add up to the counter's value.
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

class PowerLog {
 public:
  explicit PowerLog(std::unique_ptr<Meter> meter,
                    std::chrono::milliseconds every = std::chrono::milliseconds(100));
  PowerLog(const PowerLog&) = delete;
  PowerLog& operator=(const PowerLog&) = delete;
  ~PowerLog();

  // Consumption since the last call, or since construction.
  PowerUse take();

 private:
  void work(std::chrono::milliseconds every);
  void read();

  const base::Clock& clock_ = base::system_clock();
  const std::unique_ptr<Meter> meter_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  Consumption consumption_;
  std::thread thread_;
};

}  // namespace assay::machine
