// Metric: which number a run is judged by, and how it is found in what the run left behind.
//
//   wall             seconds from start to end
//   cpu              processor seconds of it and its children
//   regex:PATTERN    the last match in its output: the first group, or all of it
//   json:PATH        in the last JSON document of its output that has it: a.b.0.c
//   stored:NAME      the median, over steps, of what the run that it recorded measured
//
// Steps are found in the same ways: regex:PATTERN with two groups, step and value, in every line;
// json:STEP,VALUE in every line; stored:NAME. A carriage return ends a line, too. Standard output
// is searched first; standard error counts where that has nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/pattern.h"

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

// What a run printed.
struct Printed {
  std::string_view out;
  std::string_view err = {};
};

// Of kinds kRegex and kJson. An error says what was not found.
base::Result<double> value_in(const Metric& metric, const Printed& printed,
                              const Patience& patience = Patience());
// Of text that did not come in two streams.
base::Result<double> value_in(const Metric& metric, std::string_view text);

struct FoundSteps {
  std::vector<StepValue> steps;  // never empty
  bool in_err = false;           // in standard error, which their offsets are of then
};
// Every step in order, if its value is more than 0; of a step that stands there twice, the last.
base::Result<FoundSteps> steps_in(const Metric& metric, const Printed& printed,
                                  const Patience& patience = Patience());

}  // namespace assay::compare
