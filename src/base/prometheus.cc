#include "base/prometheus.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/utf8.h"

namespace assay::base {
namespace {

// Backslash and line feed are escaped everywhere, quotes only in label values.
std::string escaped_metric_text(std::string_view text, bool quotes) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char next = first_utf8_char(text);
    const char c = text.front();
    if (!next.valid) {
      out += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || (quotes && c == '"')) out += '\\';
      out += text.substr(0, next.size);
    }
    text.remove_prefix(next.size);
  }
  return out;
}

}  // namespace

MetricFamily::MetricFamily(std::string name, MetricType type, std::string_view help)
    : name_(std::move(name)),
      head_(fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, escaped_metric_text(help, false),
                        type == MetricType::kCounter ? "counter" : "gauge")) {}

void MetricFamily::add_text(const MetricLabels& labels, std::string_view value) {
  std::string list;
  for (const auto& [name, text] : labels) {
    list +=
        fmt::format("{}{}=\"{}\"", list.empty() ? "{" : ",", name, escaped_metric_text(text, true));
  }
  if (!list.empty()) list += '}';
  samples_ += fmt::format("{}{} {}\n", name_, list, value);
}

void MetricFamily::add(const MetricLabels& labels, double value) {
  if (std::isnan(value)) return add_text(labels, "NaN");
  if (std::isinf(value)) return add_text(labels, value > 0 ? "+Inf" : "-Inf");
  add_text(labels, fmt::format("{}", value));
}

void MetricFamily::add(const MetricLabels& labels, std::uint64_t value) {
  add_text(labels, fmt::format("{}", value));
}

std::string MetricFamily::text() const {
  return samples_.empty() ? "" : head_ + samples_;
}

std::string metric_name_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool allowed = is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    out += allowed ? c : '_';
  }
  return out;
}

}  // namespace assay::base
