// Prometheus' text exposition format, version 0.0.4. A metric family is written as a whole, with
// its HELP and TYPE lines before all of its samples, as the format requires.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::base {

inline constexpr std::string_view kPrometheusContentType =
    "text/plain; version=0.0.4; charset=utf-8";

enum class MetricType { kGauge, kCounter };

// Names and values. A value may hold any bytes: invalid UTF-8 is shown as \xNN.
using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

class MetricFamily {
 public:
  MetricFamily(std::string name, MetricType type, std::string_view help);

  void add(const MetricLabels& labels, double value);
  void add(const MetricLabels& labels, std::uint64_t value);
  // Empty without samples.
  [[nodiscard]] std::string text() const;

 private:
  void add_text(const MetricLabels& labels, std::string_view value);

  std::string name_;
  std::string head_;
  std::string samples_;
};

// Replaces every character not allowed in a metric name by '_'. The result may begin with a digit,
// so it needs a prefix.
std::string metric_name_part(std::string_view text);

}  // namespace assay::base
