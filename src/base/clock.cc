// The system clock, and calendar text from its nanoseconds.
#include "base/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <chrono>

namespace assay::base {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t monotonic_ns() const override { return read(CLOCK_MONOTONIC); }
  [[nodiscard]] std::int64_t wall_ns() const override { return read(CLOCK_REALTIME); }

 private:
  static std::int64_t read(clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return nanoseconds(now);
  }
};

using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;
using Milliseconds = std::chrono::duration<std::int64_t, std::milli>;

// Up to and including the seconds. The day is kept apart from the time of day because the start of
// the first representable day is itself out of range in nanoseconds.
std::string text_to_seconds(Milliseconds since_epoch) {
  const auto days = std::chrono::floor<std::chrono::days>(since_epoch);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss time(since_epoch - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string utc_text(std::int64_t wall_ns) {
  return text_to_seconds(std::chrono::floor<Milliseconds>(Nanoseconds(wall_ns))) + "Z";
}

std::string utc_millis_text(std::int64_t wall_ns) {
  const auto millis = std::chrono::floor<Milliseconds>(Nanoseconds(wall_ns));
  const auto rest = millis - std::chrono::floor<std::chrono::seconds>(millis);
  return fmt::format("{}.{:03}Z", text_to_seconds(millis), rest.count());
}

}  // namespace assay::base
