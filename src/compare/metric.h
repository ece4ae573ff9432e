// Metric: which number a run is judged by, and how it is found in what the run left behind.
//
//   wall             seconds from start to end
//   cpu              processor seconds of it and its children
//   regex:PATTERN    the last match in its output: the first group, or all of it
//   json:PATH        in the last JSON document of its output that has it: a.b.0.c
//   stored:NAME      the median, over steps, of what the job that it recorded measured
//
// Steps are found in the same ways: regex:PATTERN with two groups, step and value, in every line;
// json:STEP,VALUE in every line; stored:NAME.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::compare {

enum class MetricKind { kWall, kCpu, kRegex, kJson, kStored };

struct Metric {
  MetricKind kind = MetricKind::kWall;
  std::string pattern;

  [[nodiscard]] std::string text() const;  // as it is written on a command line
  bool operator==(const Metric&) const = default;
};

// Usage errors name no place: the caller knows which option it was.
base::Result<Metric> parse_metric(std::string_view text);
base::Result<Metric> parse_steps(std::string_view text);

struct StepValue {
  std::int64_t step = 0;
  double value = 0;
  std::size_t offset = 0;  // of the end of its line in the output

  bool operator==(const StepValue&) const = default;
};

// In standard output and standard error together, of kinds kRegex and kJson. An error says what was
// not found.
base::Result<double> value_in(const Metric& metric, std::string_view output);
// Every step in order, if its value is more than 0; of a step that stands there twice, the last.
// Never empty.
base::Result<std::vector<StepValue>> steps_in(const Metric& metric, std::string_view output);

}  // namespace assay::compare
