// Where log lines go and which are let through; log_line.cc is what they look like.
#include "base/log.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <mutex>

#include "base/clock.h"
#include "base/stderr_line.h"
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
std::atomic<LogSink*> g_sink = nullptr;
std::once_flag g_environment_read;

// The position of `name` in `names`, or -1.
int position(std::string_view name, std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return -1;
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

void set_log_settings(LogSettings settings) {
  store(settings);
}

LogSettings log_settings() {
  read_environment_once();
  return {static_cast<LogLevel>(log_detail::threshold.load()), g_format};
}

LogSink* set_log_sink(LogSink* sink) {
  return g_sink.exchange(sink);
}

void set_log_environment(const char* level, const char* format) {
  // An empty variable is how a shell script says "unset".
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
  if (LogSink* sink = g_sink) {
    sink->write(line);
    return;
  }
  // The progress line comes back with its next drawing.
  if (progress_on_stderr.exchange(false)) line.insert(0, kClearLine);
  write_stderr(line);
}

}  // namespace log_detail
}  // namespace assay::base
