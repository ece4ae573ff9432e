// Structured log lines on standard error, for the operator of the program.
//
//   log_info("store opened", {{"path", path}, {"schema", 3}});
//
// ASSAY_LOG=debug|info|warn|error|off chooses the level (warn when unset) and ASSAY_LOG_FORMAT=json
// turns each line into an object with its time. A level that is off costs one comparison.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace assay::base {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat { kText, kJson };

// A string, integer, number or bool. Strings are not copied: a field lives as long as the call.
class LogValue {
 public:
  using Variant = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  LogValue(bool value) : value_(value) {}
  LogValue(std::signed_integral auto value) : value_(std::int64_t{value}) {}
  LogValue(std::unsigned_integral auto value) : value_(std::uint64_t{value}) {}
  LogValue(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> LogValue(const Text& value)
      : value_(std::string_view(value)) {}
  // A std::filesystem::path, which this header need not include.
  template <class Path>
  requires requires(const Path& path) {
    { path.native() } -> std::same_as<const std::string&>;
  }
  LogValue(const Path& path) : value_(std::string_view(path.native())) {}

  [[nodiscard]] const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

struct LogField {
  std::string_view key;
  LogValue value;
};

struct LogSettings {
  LogLevel level = LogLevel::kWarn;
  LogFormat format = LogFormat::kText;
};

// These settings replace those of the environment.
void set_log_settings(LogSettings settings);
LogSettings log_settings();
// Takes the values of ASSAY_LOG and ASSAY_LOG_FORMAT (nullptr: unset). An unknown value
// is ignored with one warning line.
void set_log_environment(const char* level, const char* format);

// One line, without the newline. `wall_ns` is used by the JSON form.
std::string log_line(LogFormat format, LogLevel level, std::string_view message,
                     std::span<const LogField> fields, std::int64_t wall_ns);

namespace log_detail {
// Lower than every level, so that the first log call of all reads the environment.
inline constexpr int kEnvironmentNotRead = -1;
inline std::atomic<int> threshold = kEnvironmentNotRead;
void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields);
}  // namespace log_detail

inline void log(LogLevel level, std::string_view message,
                std::initializer_list<LogField> fields = {}) {
  if (static_cast<int>(level) < log_detail::threshold.load(std::memory_order_relaxed)) return;
  log_detail::write(level, message, fields);
}

inline void log_info(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kInfo, message, fields);
}
inline void log_warn(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kWarn, message, fields);
}
inline void log_error(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kError, message, fields);
}

}  // namespace assay::base
