#include "compare/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace assay::compare {
namespace {

constexpr std::size_t kMostPoints = 100;

std::string placeholder(const ScanParameter& parameter) {
  return "{" + parameter.name + "}";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

template <class Visit>
void each_text(Arm& arm, const Visit& visit) {
  visit(arm.command);
  visit(arm.prepare);
  visit(arm.cleanup);
  for (std::string& setting : arm.environment) visit(setting);
}

// All combinations, the last parameter varying fastest.
std::vector<std::vector<std::string>> combinations(std::span<const ScanParameter> parameters) {
  std::vector<std::vector<std::string>> found = {{}};
  for (const ScanParameter& parameter : parameters) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& values : found) {
      for (const std::string& value : parameter.values) {
        longer.push_back(values);
        longer.back().push_back(value);
      }
    }
    found = std::move(longer);
  }
  return found;
}

// "N=1,M=2"; a part of file names, so without slashes.
std::string point_name(std::span<const ScanParameter> parameters,
                       const std::vector<std::string>& values) {
  std::string name;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    name += fmt::format("{}{}={}", i == 0 ? "" : ",", parameters[i].name, values[i]);
  }
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

Arm substituted(Arm arm, std::span<const ScanParameter> parameters,
                const std::vector<std::string>& values) {
  each_text(arm, [&](std::string& text) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      replace_all(text, placeholder(parameters[i]), values[i]);
    }
  });
  return arm;
}

base::Result<void> check_parameters(Experiment experiment,
                                    std::span<const ScanParameter> parameters) {
  std::size_t points = 1;
  std::set<std::string> names;
  for (const ScanParameter& parameter : parameters) {
    if (!names.insert(parameter.name).second) {
      return base::fail(
          base::usage_error("--scan", fmt::format("'{}' is given twice", parameter.name)));
    }
    bool used = false;
    for (Arm& arm : experiment.arms) {
      each_text(arm, [&](const std::string& text) {
        used = used || text.find(placeholder(parameter)) != std::string::npos;
      });
    }
    if (!used) {
      return base::fail(base::usage_error(
          "--scan", fmt::format("no command contains '{}'", placeholder(parameter)),
          fmt::format("write {} where its value belongs", placeholder(parameter))));
    }
    points *= parameter.values.size();
    if (points > kMostPoints) {
      return base::fail(
          base::usage_error("--scan", fmt::format("more than {} combinations", kMostPoints)));
    }
  }
  return {};
}

}  // namespace

base::Result<ScanParameter> parse_scan(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return base::fail(base::usage_error("--scan", fmt::format("'{}' {}", text, what),
                                        "--scan N=1,2,4, with {N} in the command"));
  };
  const std::size_t equals = text.find('=');
  ScanParameter parameter{.name = std::string(text.substr(0, equals)), .values = {}};
  const auto is_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (equals == std::string_view::npos || parameter.name.empty() ||
      !std::all_of(parameter.name.begin(), parameter.name.end(), is_name)) {
    return wrong("is not NAME=VALUE,VALUE…");
  }
  std::string_view rest = text.substr(equals + 1);
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string value(base::trim(rest.substr(0, comma)));
    if (value.empty() || value.find_first_of("'\n") != std::string::npos) {
      return wrong("has an empty or quoted value");
    }
    if (std::count(parameter.values.begin(), parameter.values.end(), value) > 0) {
      return wrong(fmt::format("has '{}' twice", value));
    }
    parameter.values.push_back(value);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return parameter;
}

base::Result<Experiment> with_arm_per_value(const Experiment& experiment,
                                            std::span<const ScanParameter> parameters) {
  ASSAY_TRY_VOID(check_parameters(experiment, parameters));
  Experiment scan = experiment;
  scan.arms.clear();
  for (const ScanParameter& parameter : parameters) scan.scanned.push_back(parameter.name);
  for (std::vector<std::string>& values : combinations(parameters)) {
    Arm arm = substituted(experiment.arms.front(), parameters, values);
    arm.name = point_name(parameters, values);
    arm.values = std::move(values);
    scan.arms.push_back(std::move(arm));
  }
  return scan;
}

base::Result<std::vector<ScanPoint>> experiment_per_value(
    const Experiment& experiment, std::span<const ScanParameter> parameters) {
  ASSAY_TRY_VOID(check_parameters(experiment, parameters));
  std::vector<ScanPoint> points;
  for (std::vector<std::string>& values : combinations(parameters)) {
    ScanPoint point{point_name(parameters, values), std::move(values), experiment};
    for (Arm& arm : point.experiment.arms) arm = substituted(arm, parameters, point.values);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace assay::compare
