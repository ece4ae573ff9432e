// Clocks behind an interface, so that code that waits or measures can be tested without waiting.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

#include "base/units.h"

namespace assay::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back; its zero is arbitrary. For measuring.
  [[nodiscard]] virtual std::int64_t monotonic_ns() const = 0;
  // Since 1970-01-01 UTC; may be set back. For stamping.
  [[nodiscard]] virtual std::int64_t wall_ns() const = 0;
};

// The machine's clock; lives as long as the program.
const Clock& system_clock();

// "2026-11-15T01:58:14Z". Rounds down, also before 1970. 64 bits of nanoseconds cover 1677 to 2262,
// and every value has a text.
std::string utc_text(std::int64_t wall_ns);
// "2026-11-15T01:58:14.250Z"
std::string utc_millis_text(std::int64_t wall_ns);

// In this machine's time zone, for people; JSON and files use UTC.
// "2026-11-15 02:58:14"
std::string local_text(std::int64_t wall_ns);
// "14:02" for a time on the day of `now_ns`, else "2026-11-15 14:02".
std::string local_minute_text(std::int64_t wall_ns, std::int64_t now_ns);

// The kernel's time type, in nanoseconds.
constexpr std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

constexpr double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

// Time since construction or restart().
class Stopwatch {
 public:
  // The clock must outlive the stopwatch.
  explicit Stopwatch(const Clock& clock = system_clock())
      : clock_(&clock), start_ns_(clock.monotonic_ns()) {}

  [[nodiscard]] std::int64_t elapsed_ns() const { return clock_->monotonic_ns() - start_ns_; }
  [[nodiscard]] Seconds elapsed() const { return Seconds(static_cast<double>(elapsed_ns()) / 1e9); }
  void restart() { start_ns_ = clock_->monotonic_ns(); }

 private:
  const Clock* clock_;
  std::int64_t start_ns_;
};

}  // namespace assay::base
