#include "compare/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <regex>

#include "base/json.h"
#include "base/text.h"

namespace assay::compare {
namespace {

using base::Json;

// The library's matcher recurses for every character: a longer line could exhaust the stack.
constexpr std::size_t kLongestLine = 4000;
constexpr std::array<std::pair<MetricKind, std::string_view>, 5> kMetricNames = {{
    {MetricKind::kWall, "wall"},
    {MetricKind::kCpu, "cpu"},
    {MetricKind::kRegex, "regex:"},
    {MetricKind::kJson, "json:"},
    {MetricKind::kStored, "stored:"},
}};
constexpr const char* kMetricForms = "one of wall, cpu, regex:PATTERN, json:PATH, stored:NAME";

base::Result<std::regex> regex_of(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return base::fail(base::usage_error("", fmt::format("'{}' is no regular expression", pattern),
                                        "groups are (…), a digit is [0-9]"));
  }
}

std::optional<double> number_of(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> whole_number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Calls visit(line, offset of its end) for each line, the last one too if nothing ends it.
template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    visit(text.substr(begin, end - begin), end);
    begin = end + 1;
  }
}

const Json* at_path(const Json& document, std::string_view path) {
  const Json* here = &document;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string key(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
    const auto index = whole_number_of(key);
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

using LineMatch = std::match_results<std::string_view::const_iterator>;

base::Error not_found(const Metric& metric, std::string_view what) {
  return base::unfit_error(
      "", fmt::format("'{}' {} in its output", base::shortened(metric.text(), 100), what));
}

base::Result<double> last_match(const Metric& metric, std::string_view output) {
  ASSAY_TRY(const std::regex pattern, regex_of(metric.pattern));
  std::optional<std::string> found;
  each_line(output, [&](std::string_view line, std::size_t) {
    line = line.substr(0, kLongestLine);
    LineMatch match;
    while (std::regex_search(line.begin(), line.end(), match, pattern)) {
      found = match.size() > 1 ? match[1].str() : match[0].str();
      // The rest of the line may have another; an empty match would not move on.
      const auto used = static_cast<std::size_t>(match[0].second - line.begin());
      if (match.length(0) == 0) break;
      line.remove_prefix(used);
    }
  });
  if (!found) return base::fail(not_found(metric, "was not found"));
  const auto value = number_of(*found);
  if (!value) {
    return base::fail(not_found(
        metric, fmt::format("matched '{}', which is no number,", base::shortened(*found, 60))));
  }
  return *value;
}

base::Result<double> last_json(const Metric& metric, std::string_view output) {
  const Json whole = parsed(output);
  std::optional<double> found;
  if (!whole.is_discarded()) {
    found = number_at(whole, metric.pattern);
  } else {
    each_line(output, [&](std::string_view line, std::size_t) {
      if (const auto value = number_at(parsed(line), metric.pattern)) found = value;
    });
  }
  if (!found || !std::isfinite(*found)) return base::fail(not_found(metric, "has no number"));
  return *found;
}

}  // namespace

std::string Metric::text() const {
  for (const auto& [named, name] : kMetricNames) {
    if (named == kind) return std::string(name) + pattern;
  }
  return pattern;
}

base::Result<Metric> parse_metric(std::string_view text) {
  for (const auto& [kind, name] : kMetricNames) {
    if (!name.ends_with(':')) {
      if (text == name) return Metric{kind, ""};
      continue;
    }
    if (!text.starts_with(name)) continue;
    Metric metric{kind, std::string(text.substr(name.size()))};
    if (metric.pattern.empty()) break;
    if (kind == MetricKind::kRegex) ASSAY_TRY_VOID(regex_of(metric.pattern));
    return metric;
  }
  return base::fail(base::usage_error("", fmt::format("'{}' is no metric", text), kMetricForms));
}

base::Result<Metric> parse_steps(std::string_view text) {
  ASSAY_TRY(Metric metric, parse_metric(text));
  if (metric.kind == MetricKind::kRegex) {
    ASSAY_TRY(const std::regex pattern, regex_of(metric.pattern));
    if (pattern.mark_count() == 2) return metric;
  } else if (metric.kind == MetricKind::kJson) {
    if (std::count(metric.pattern.begin(), metric.pattern.end(), ',') == 1) return metric;
  } else if (metric.kind == MetricKind::kStored) {
    return metric;
  }
  return base::fail(base::usage_error(
      "", fmt::format("'{}' does not say where steps are", text),
      "regex:PATTERN with two groups, step and value, or json:STEP,VALUE, or stored:NAME"));
}

base::Result<double> value_in(const Metric& metric, std::string_view output) {
  return metric.kind == MetricKind::kRegex ? last_match(metric, output) : last_json(metric, output);
}

base::Result<std::vector<StepValue>> steps_in(const Metric& metric, std::string_view output) {
  std::map<std::int64_t, StepValue> steps;
  const auto keep = [&](std::optional<std::int64_t> step, std::optional<double> value,
                        std::size_t offset) {
    if (step && value && std::isfinite(*value) && *value > 0)
      steps[*step] = {*step, *value, offset};
  };
  if (metric.kind == MetricKind::kRegex) {
    ASSAY_TRY(const std::regex pattern, regex_of(metric.pattern));
    each_line(output, [&](std::string_view line, std::size_t end) {
      line = line.substr(0, kLongestLine);
      LineMatch match;
      if (!std::regex_search(line.begin(), line.end(), match, pattern)) return;
      keep(whole_number_of(match[1].str()), number_of(match[2].str()), end);
    });
  } else {
    const std::size_t comma = metric.pattern.find(',');
    const std::string step_path = metric.pattern.substr(0, comma);
    const std::string value_path = metric.pattern.substr(comma + 1);
    each_line(output, [&](std::string_view line, std::size_t end) {
      const Json document = parsed(line);
      const auto step = number_at(document, step_path);
      if (!step || std::abs(*step) > 1e15) return;
      keep(static_cast<std::int64_t>(*step), number_at(document, value_path), end);
    });
  }
  if (steps.empty()) return base::fail(not_found(metric, "found no step"));
  std::vector<StepValue> found;
  for (const auto& [step, value] : steps) found.push_back(value);
  return found;
}

}  // namespace assay::compare
