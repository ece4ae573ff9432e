// The system clock, and calendar text from its nanoseconds.
#include "base/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <ctime>

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

std::tm local_time(std::int64_t wall_ns) {
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(wall_ns)).count();
  const auto time = static_cast<std::time_t>(seconds);
  std::tm broken{};
  ::localtime_r(&time, &broken);
  return broken;
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

std::string local_text(std::int64_t wall_ns) {
  const std::tm time = local_time(wall_ns);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

std::string local_minute_text(std::int64_t wall_ns, std::int64_t now_ns) {
  const std::string text = local_text(wall_ns);
  constexpr std::size_t kDate = 10;  // "2026-11-15"
  const std::string minute = text.substr(0, text.size() - 3);
  return text.substr(0, kDate) == local_text(now_ns).substr(0, kDate) ? minute.substr(kDate + 1)
                                                                      : minute;
}

}  // namespace assay::base
