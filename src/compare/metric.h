// ComparedMetric: the number by which runs are compared, and where it is found.
//
//   wall             seconds from start to end
//   cpu              processor seconds of it and its children
//   regex:PATTERN    the last match in its output: the first group, or the whole match
//   json:PATH        from the last JSON document of its output that contains it: a.b.0.c
//   stored:NAME      the median over steps of this series, from the run that the command recorded
//
// Steps are found in the same ways: regex:PATTERN with two groups, step and value, in every line;
// json:STEP,VALUE in every line; stored:NAME. A carriage return ends a line too. Standard error is
// searched only if standard output has no match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/output_search.h"

namespace assay::compare {

enum class MetricKind { kWall, kCpu, kRegex, kJson, kStored };

struct ComparedMetric {
  MetricKind kind = MetricKind::kWall;
  std::string pattern;

  [[nodiscard]] std::string text() const;  // as on the command line
  bool operator==(const ComparedMetric&) const = default;
};

// Usage errors leave `where` empty: the caller knows which option it was.
base::Result<ComparedMetric> parse_metric(std::string_view text);
base::Result<ComparedMetric> parse_steps(std::string_view text);

struct StepValue {
  std::int64_t step = 0;
  double value = 0;
  std::size_t offset = 0;  // where its line ends in the output

  bool operator==(const StepValue&) const = default;
};

struct RunOutput {
  std::string_view out;
  std::string_view err = {};
};

// For kRegex and kJson. The error says what was not found.
base::Result<double> value_in(const ComparedMetric& metric, const RunOutput& printed,
                              const SearchLimit& limit = SearchLimit());
base::Result<double> value_in(const ComparedMetric& metric, std::string_view text);

struct FoundSteps {
  std::vector<StepValue> steps;  // never empty
  bool in_err = false;           // found in standard error, which the offsets refer to
};
// Steps with values above 0, in order; if a step occurs twice, its last value.
base::Result<FoundSteps> steps_in(const ComparedMetric& metric, const RunOutput& printed,
                                  const SearchLimit& limit = SearchLimit());

}  // namespace assay::compare
