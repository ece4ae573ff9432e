// The two forms of a log line: logfmt-like text for people, one JSON object for machines.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

namespace assay::base {
namespace {

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "off";
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

}  // namespace

std::string log_line(LogFormat format, LogLevel level, std::string_view message,
                     std::span<const LogField> fields, std::int64_t wall_ns) {
  return format == LogFormat::kJson ? json_line(level, message, fields, wall_ns)
                                    : text_line(level, message, fields);
}

}  // namespace assay::base
