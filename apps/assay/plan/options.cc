#include "assay/plan/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/decimal.h"
#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "cli/number_option.h"
#include "plan/search/layouts.h"

namespace assay::cli {
namespace {

constexpr base::Bytes kLongestConstants{1 << 20};

}  // namespace

std::string plan_command(const PlanOptions& options) {
  const auto word = [](const std::string& text) {
    return base::shell_quoted(base::printable(text));
  };
  std::string command = "assay plan " + word(options.job);
  for (const std::string& set : options.sets) command += " --set " + word(set);
  for (const auto& [name, value] :
       {std::pair("--framework", &options.framework), std::pair("--imbalance", &options.imbalance),
        std::pair("--constants", &options.constants)}) {
    if (!value->empty()) command += fmt::format(" {} {}", name, word(*value));
  }
  return command;
}

base::Result<void> check_svg(const PlanOptions& options) {
  if (options.svg.empty()) return {};
  const std::filesystem::path folder = options.svg;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed && !std::filesystem::is_directory(folder)) {
    failed = std::make_error_code(std::errc::not_a_directory);
  }
  if (!failed && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    failed = std::error_code(errno, std::generic_category());
  }
  if (!failed) return {};
  return base::fail(
      base::system_error(base::printable(options.svg), "cannot be written", failed.value()));
}

base::Result<spec::Loaded> load_job(const PlanOptions& options) {
  const auto advice = [](const spec::JobSpec& job) {
    const auto nearest = plan::nearest_valid(job);
    return nearest ? "nearest valid layout: " + plan::to_text(nearest->layout) : "";
  };
  ASSAY_TRY(spec::Loaded loaded, spec::load(options.job, {.overrides = options.sets,
                                                          .possible_layout = advice,
                                                          .cpu_ranks_from_layout = true}));
  if (!std::holds_alternative<spec::JobSpec>(loaded.spec)) {
    return base::fail(base::usage_error(
        options.job, fmt::format("is a {}, not a job", spec::to_text(loaded.kind())),
        "a job has a [model] and a [batch] or [train]"));
  }
  if (!options.imbalance.empty() && !std::get<spec::JobSpec>(loaded.spec).model.is_moe()) {
    return base::fail(base::usage_error("--imbalance", "applies to experts, but the model has none",
                                        "leave it out, or set model.experts"));
  }
  return loaded;
}

base::Result<plan::Assumed> assumed_by(const PlanOptions& options) {
  constexpr double kMostImbalance = 1000;
  plan::Assumed assumed;
  ASSAY_TRY(assumed.imbalance, factor_of("--imbalance", options.imbalance, 1, kMostImbalance));
  if (options.framework.empty()) return assumed;
  assumed.framework = plan::parse_framework(options.framework);
  if (!assumed.framework) {
    const std::vector<std::string> known = plan::framework_names();
    std::string hint = base::suggestion(options.framework, known);
    if (hint.empty()) hint = fmt::format("one of {}", fmt::join(known, ", "));
    return base::fail(base::usage_error(
        "--framework", fmt::format("unknown framework '{}'", options.framework), std::move(hint)));
  }
  return assumed;
}

base::Result<plan::Calibration> calibration_by(const PlanOptions& options) {
  if (options.constants.empty()) return plan::shipped_calibration();
  ASSAY_TRY(const std::string text, base::read_file(options.constants, kLongestConstants));
  return plan::calibration_from_json(text, options.constants);
}

base::Result<std::optional<base::Seconds>> duration_of(const std::string& option,
                                                       const std::string& text, const char* unit) {
  if (text.empty()) return std::nullopt;
  const bool bare = base::decimal_size(text) == text.size();
  if (bare && unit == nullptr) {
    return base::fail(base::usage_error(option, fmt::format("'{}' has no unit", text),
                                        fmt::format("for example {0}h or {0}d", text)));
  }
  auto value = base::parse_seconds(bare ? text + unit : text);
  if (!value) {
    value.error().where = option;
    return base::fail(std::move(value).error());
  }
  if (value->count() <= 0) {
    return base::fail(
        base::usage_error(option, fmt::format("must be greater than 0, got '{}'", text)));
  }
  return *value;
}

base::Result<std::optional<double>> factor_of(const std::string& option, const std::string& text,
                                              double least, double most) {
  if (text.empty()) return std::nullopt;
  return number_option<double>(option, text, least, most);
}

}  // namespace assay::cli
