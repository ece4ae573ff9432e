#include "compare/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace assay::compare {
namespace {

constexpr std::size_t kMostPoints = 100;
constexpr std::size_t kNameColumns = 120;  // a file name may have 255 bytes

std::string placeholder(const ScanParameter& parameter) {
  return "{" + parameter.name + "}";
}

// `text` with every placeholder replaced. One pass: what a value contains is not replaced again.
std::string with_values(const std::string& text, std::span<const ScanParameter> parameters,
                        const std::vector<std::string>& values) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < parameters.size() && used == 0; ++i) {
      const std::string placed = placeholder(parameters[i]);
      if (text.compare(at, placed.size(), placed) != 0) continue;
      made += values[i];
      used = placed.size();
    }
    if (used == 0) made += text[at];
    at += std::max<std::size_t>(used, 1);
  }
  return made;
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

// "N=1,M=2": a part of file names, so without slashes, and no two alike.
class PointNames {
 public:
  explicit PointNames(std::span<const ScanParameter> parameters) : parameters_(parameters) {}

  std::string of(const std::vector<std::string>& values) {
    std::string name;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      name += fmt::format("{}{}={}", i == 0 ? "" : ",", parameters_[i].name, values[i]);
    }
    std::replace(name.begin(), name.end(), '/', '_');
    name = base::shortened(name, kNameColumns);
    std::string unique = name;
    for (int copy = 2; !given_.insert(unique).second; ++copy) {
      unique = fmt::format("{}~{}", name, copy);
    }
    return unique;
  }

 private:
  std::span<const ScanParameter> parameters_;
  std::set<std::string> given_;
};

Arm substituted(Arm arm, std::span<const ScanParameter> parameters,
                const std::vector<std::string>& values) {
  arm.scanned_command = arm.command;
  each_text(arm, [&](std::string& text) { text = with_values(text, parameters, values); });
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
  const std::size_t equals = text.find('=');
  ScanParameter parameter{.name = std::string(text.substr(0, equals)), .values = {}};
  const bool has_values = equals != std::string_view::npos;
  for (std::string_view rest = has_values ? text.substr(equals + 1) : ""; has_values;) {
    const std::size_t comma = rest.find(',');
    parameter.values.emplace_back(base::trim(rest.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (const std::string problem = problem_of(parameter); !problem.empty()) {
    return base::fail(base::usage_error("--scan", fmt::format("'{}' {}", text, problem),
                                        "--scan N=1,2,4, with {N} in the command"));
  }
  return parameter;
}

std::string problem_of(const ScanParameter& parameter) {
  const auto is_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (parameter.name.empty() || parameter.values.empty() ||
      !std::all_of(parameter.name.begin(), parameter.name.end(), is_name)) {
    return "is not NAME=VALUE,VALUE…";
  }
  std::set<std::string> seen;
  for (const std::string& value : parameter.values) {
    if (value.empty() || value.find_first_of("'\n") != std::string::npos) {
      return "has an empty or quoted value";
    }
    if (!seen.insert(value).second) return fmt::format("has '{}' twice", value);
  }
  return {};
}

base::Result<Experiment> with_arm_per_value(const Experiment& experiment,
                                            std::span<const ScanParameter> parameters) {
  ASSAY_TRY_VOID(check_parameters(experiment, parameters));
  Experiment scan = experiment;
  scan.arms.clear();
  PointNames names(parameters);
  for (const ScanParameter& parameter : parameters) scan.scanned.push_back(parameter.name);
  for (std::vector<std::string>& values : combinations(parameters)) {
    Arm arm = substituted(experiment.arms.front(), parameters, values);
    arm.name = names.of(values);
    arm.values = std::move(values);
    scan.arms.push_back(std::move(arm));
  }
  return scan;
}

base::Result<std::vector<ScanPoint>> experiment_per_value(
    const Experiment& experiment, std::span<const ScanParameter> parameters) {
  ASSAY_TRY_VOID(check_parameters(experiment, parameters));
  std::vector<ScanPoint> points;
  PointNames names(parameters);
  for (std::vector<std::string>& values : combinations(parameters)) {
    std::string name = names.of(values);
    ScanPoint point{std::move(name), std::move(values), experiment};
    for (Arm& arm : point.experiment.arms) arm = substituted(arm, parameters, point.values);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace assay::compare
