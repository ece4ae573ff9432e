#include "compare/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"

namespace assay::compare {
namespace {

using base::Json;

// Common patterns take quadratic time in the length of a line.
constexpr std::size_t kLongestLine = 65'536;
constexpr std::array<std::pair<MetricKind, std::string_view>, 5> kMetricNames = {{
    {MetricKind::kWall, "wall"},
    {MetricKind::kCpu, "cpu"},
    {MetricKind::kRegex, "regex:"},
    {MetricKind::kJson, "json:"},
    {MetricKind::kStored, "stored:"},
}};
constexpr const char* kMetricForms = "one of wall, cpu, regex:PATTERN, json:PATH, stored:NAME";

std::optional<double> number_of(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  return base::parse_number<double>(text);
}

// Calls visit(line, offset of its end) for each line. A carriage return ends a line too, so every
// update of a progress bar is one.
template <class Visit>
base::Result<void> each_line(std::string_view text, const Visit& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    ASSAY_TRY_VOID(visit(text.substr(begin, end - begin), end));
    begin = end + 1;
  }
  return {};
}

const Json* at_path(const Json& document, std::string_view path) {
  const Json* here = &document;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string key(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
    const auto index = base::parse_number<std::int64_t>(key);
    if (here->is_object() && here->contains(key)) {
      here = &here->at(key);
    } else if (here->is_array() && index && *index >= 0 &&
               static_cast<std::size_t>(*index) < here->size()) {
      here = &here->at(static_cast<std::size_t>(*index));
    } else {
      return nullptr;
    }
  }
  return here;
}

std::optional<double> number_at(const Json& document, std::string_view path) {
  const Json* found = at_path(document, path);
  if (found == nullptr) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  return found->is_string() ? number_of(found->get<std::string>()) : std::nullopt;
}

Json parsed(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

base::Error not_found(const ComparedMetric& metric, std::string_view what) {
  return base::unfit_error(
      "", fmt::format("'{}' {} in its output", base::shortened(metric.text(), 100), what));
}

base::Result<std::optional<std::string>> last_match(const Pattern& pattern, std::string_view text,
                                                    const SearchLimit& limit) {
  std::optional<std::string> found;
  const auto search = [&](std::string_view line, std::size_t) -> base::Result<void> {
    line = line.substr(0, kLongestLine);
    for (std::size_t from = 0;;) {
      ASSAY_TRY(const auto match, pattern.search(line, from, limit));
      if (!match) return {};
      found = match->groups[pattern.groups() > 0 ? 1 : 0];
      // The rest of the line may have another; an empty match would not move on.
      if (match->groups[0].empty()) return {};
      from = match->end;
    }
  };
  ASSAY_TRY_VOID(each_line(text, search));
  return found;
}

base::Result<double> matched_value(const ComparedMetric& metric, const RunOutput& output,
                                   const SearchLimit& limit) {
  ASSAY_TRY(const Pattern pattern, Pattern::compile(metric.pattern));
  for (const std::string_view text : {output.out, output.err}) {
    ASSAY_TRY(const auto found, last_match(pattern, text, limit));
    if (!found) continue;
    if (const auto value = number_of(*found)) return *value;
    return base::fail(not_found(
        metric, fmt::format("matched '{}', which is not a number,", base::shortened(*found, 60))));
  }
  return base::fail(not_found(metric, "was not found"));
}

base::Result<double> value_in_documents(const ComparedMetric& metric, const RunOutput& output,
                                        const SearchLimit& limit) {
  for (const std::string_view text : {output.out, output.err}) {
    std::optional<double> found;
    ASSAY_TRY_VOID(each_document(text, limit, [&](const Json& document) {
      const auto value = number_at(document, metric.pattern);
      if (value && std::isfinite(*value)) found = value;
    }));
    if (found) return *found;
  }
  return base::fail(not_found(metric, "has no number"));
}

using StepsByNumber = std::map<std::int64_t, StepValue>;

void keep_step(std::optional<std::int64_t> step, std::optional<double> value, std::size_t offset,
               StepsByNumber& steps) {
  if (step && value && std::isfinite(*value) && *value > 0) steps[*step] = {*step, *value, offset};
}

base::Result<void> steps_by_pattern(const ComparedMetric& metric, std::string_view text,
                                    const SearchLimit& limit, StepsByNumber& steps) {
  ASSAY_TRY(const Pattern pattern, Pattern::compile(metric.pattern));
  return each_line(text, [&](std::string_view line, std::size_t end) -> base::Result<void> {
    ASSAY_TRY(const auto match, pattern.search(line.substr(0, kLongestLine), 0, limit));
    if (!match) return {};
    keep_step(base::parse_number<std::int64_t>(match->groups[1]), number_of(match->groups[2]), end,
              steps);
    return {};
  });
}

base::Result<void> steps_by_path(const ComparedMetric& metric, std::string_view text,
                                 const SearchLimit& limit, StepsByNumber& steps) {
  const std::size_t comma = metric.pattern.find(',');
  const std::string step_path = metric.pattern.substr(0, comma);
  const std::string value_path = metric.pattern.substr(comma + 1);
  return each_line(text, [&](std::string_view line, std::size_t end) -> base::Result<void> {
    ASSAY_TRY_VOID(limit.check());
    const Json document = parsed(line);
    const auto step = number_at(document, step_path);
    if (!step || std::abs(*step) > 1e15) return {};
    keep_step(static_cast<std::int64_t>(*step), number_at(document, value_path), end, steps);
    return {};
  });
}

}  // namespace

std::string ComparedMetric::text() const {
  for (const auto& [named, name] : kMetricNames) {
    if (named == kind) return std::string(name) + pattern;
  }
  return pattern;
}

base::Result<ComparedMetric> parse_metric(std::string_view text) {
  for (const auto& [kind, name] : kMetricNames) {
    if (!name.ends_with(':')) {
      if (text == name) return ComparedMetric{kind, ""};
      continue;
    }
    if (!text.starts_with(name)) continue;
    ComparedMetric metric{kind, std::string(text.substr(name.size()))};
    if (metric.pattern.empty()) break;
    if (kind == MetricKind::kRegex) ASSAY_TRY_VOID(Pattern::compile(metric.pattern));
    return metric;
  }
  return base::fail(base::usage_error("", fmt::format("'{}' is not a metric", text), kMetricForms));
}

base::Result<ComparedMetric> parse_steps(std::string_view text) {
  ASSAY_TRY(ComparedMetric metric, parse_metric(text));
  if (metric.kind == MetricKind::kRegex) {
    ASSAY_TRY(const Pattern pattern, Pattern::compile(metric.pattern));
    if (pattern.groups() == 2) return metric;
  } else if (metric.kind == MetricKind::kJson) {
    if (std::count(metric.pattern.begin(), metric.pattern.end(), ',') == 1) return metric;
  } else if (metric.kind == MetricKind::kStored) {
    return metric;
  }
  return base::fail(base::usage_error(
      "", fmt::format("'{}' does not describe where to find the steps", text),
      "regex:PATTERN with two groups, step and value, or json:STEP,VALUE, or stored:NAME"));
}

base::Result<double> value_in(const ComparedMetric& metric, const RunOutput& output,
                              const SearchLimit& limit) {
  return metric.kind == MetricKind::kRegex ? matched_value(metric, output, limit)
                                           : value_in_documents(metric, output, limit);
}

base::Result<double> value_in(const ComparedMetric& metric, std::string_view text) {
  return value_in(metric, RunOutput{text});
}

base::Result<FoundSteps> steps_in(const ComparedMetric& metric, const RunOutput& output,
                                  const SearchLimit& limit) {
  const auto search = metric.kind == MetricKind::kRegex ? steps_by_pattern : steps_by_path;
  for (const bool in_err : {false, true}) {
    StepsByNumber steps;
    ASSAY_TRY_VOID(search(metric, in_err ? output.err : output.out, limit, steps));
    if (steps.empty()) continue;
    FoundSteps found{.in_err = in_err};
    for (const auto& [step, value] : steps) found.steps.push_back(value);
    return found;
  }
  return base::fail(not_found(metric, "found no step"));
}

}  // namespace assay::compare
