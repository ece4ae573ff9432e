// Which lines are written, where to, and their two forms: logfmt-like text for people, one JSON
// object for programs.
#include "base/log.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <mutex>

#include "base/clock.h"
#include "base/json.h"
#include "base/suggestion.h"
#include "base/terminal.h"
#include "base/text.h"

namespace assay::base {
namespace {

// In the order of LogLevel and LogFormat. Functions, because another file's static may log.
std::span<const std::string> level_names() {
  static const std::string names[] = {"debug", "info", "warn", "error", "off"};
  return names;
}
std::span<const std::string> format_names() {
  static const std::string names[] = {"text", "json"};
  return names;
}

std::atomic<LogFormat> g_format = LogFormat::kText;
std::once_flag g_environment_read;

// The position of `name` in `names`, or -1.
int position(std::string_view name, std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return -1;
}

std::string_view level_name(LogLevel level) {
  return level_names()[static_cast<std::size_t>(level)];
}

// Bare where that is unambiguous, quoted otherwise. Quotes and backslashes inside are escaped
// first, so that a value cannot look like the end of itself and the start of another key.
std::string text_value(std::string_view value) {
  std::string shown = printable(value);
  if (!shown.empty() && shown == value && shown.find_first_of(" \"=\\") == std::string::npos) {
    return shown;
  }
  std::string escaped;
  for (const char c : value) {
    switch (c) {
      case '"':
        escaped += "\\\"";
        break;
      case '\\':
        escaped += "\\\\";
        break;
      case '\n':
        escaped += "\\n";
        break;
      case '\t':
        escaped += "\\t";
        break;
      default:
        escaped += c;
    }
  }
  return "\"" + printable(escaped) + "\"";
}

std::string text_line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string line = fmt::format("assay: {}: {}", level_name(level), printable(message));
  for (const LogField& field : fields) {
    line += fmt::format(" {}=", printable(field.key));
    std::visit(
        [&](auto value) {
          if constexpr (std::is_same_v<decltype(value), std::string_view>) {
            line += text_value(value);
          } else {
            line += fmt::format("{}", value);
          }
        },
        field.value.variant());
  }
  return line;
}

std::string json_line(LogLevel level, std::string_view message, std::span<const LogField> fields,
                      std::int64_t wall_ns) {
  Json document;
  document["time"] = utc_millis_text(wall_ns);
  document["level"] = level_name(level);
  document["message"] = message;
  for (const LogField& field : fields) {
    // emplace, so that a field called "message" does not replace the message.
    std::visit([&](auto value) { document.emplace(std::string(field.key), value); },
               field.value.variant());
  }
  // ASCII only: JSON does not by itself keep C1 controls and bidi overrides from a terminal.
  return document.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void warn_ignored(std::string_view variable, const char* value,
                  std::span<const std::string> expected) {
  log_warn(fmt::format("{} is ignored", variable),
           {{"value", value}, {"hint", suggestion(value, expected)}});
}

void store(LogSettings settings) {
  g_format = settings.format;
  log_detail::threshold = static_cast<int>(settings.level);
}

void read_environment_once() {
  std::call_once(g_environment_read, [] {
    // Settings made before the first line take precedence.
    if (log_detail::threshold != log_detail::kEnvironmentNotRead) return;
    set_log_environment(std::getenv("ASSAY_LOG"), std::getenv("ASSAY_LOG_FORMAT"));
  });
}

}  // namespace

std::string log_line(LogFormat format, LogLevel level, std::string_view message,
                     std::span<const LogField> fields, std::int64_t wall_ns) {
  return format == LogFormat::kJson ? json_line(level, message, fields, wall_ns)
                                    : text_line(level, message, fields);
}

void set_log_settings(LogSettings settings) {
  store(settings);
}

LogSettings log_settings() {
  read_environment_once();
  return {static_cast<LogLevel>(log_detail::threshold.load()), g_format};
}

void set_log_environment(const char* level, const char* format) {
  // Shell scripts often unset a variable by making it empty.
  const bool has_level = level != nullptr && *level != '\0';
  const bool has_format = format != nullptr && *format != '\0';
  const int level_at = has_level ? position(level, level_names()) : -1;
  const int format_at = has_format ? position(format, format_names()) : -1;
  LogSettings settings;
  if (level_at >= 0) settings.level = static_cast<LogLevel>(level_at);
  if (format_at >= 0) settings.format = static_cast<LogFormat>(format_at);
  store(settings);
  if (has_level && level_at < 0) warn_ignored("ASSAY_LOG", level, level_names());
  if (has_format && format_at < 0) warn_ignored("ASSAY_LOG_FORMAT", format, format_names());
}

namespace log_detail {

void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (threshold == kEnvironmentNotRead) {
    read_environment_once();
    if (static_cast<int>(level) < threshold) return;
  }
  if (level == LogLevel::kOff) return;
  std::string line = log_line(g_format, level, message, {std::data(fields), fields.size()},
                              system_clock().wall_ns());
  line += '\n';
  // The progress line comes back with its next drawing.
  if (progress_on_stderr.exchange(false)) line.insert(0, kClearLine);
  write_stderr(line);
}

}  // namespace log_detail
}  // namespace assay::base
