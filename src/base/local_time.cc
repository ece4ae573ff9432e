#include "base/local_time.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace assay::base {
namespace {

std::tm local_time(std::int64_t wall_ns) {
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(wall_ns)).count();
  const auto time = static_cast<std::time_t>(seconds);
  std::tm broken{};
  ::localtime_r(&time, &broken);
  return broken;
}

}  // namespace

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
