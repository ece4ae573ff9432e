// assay log-metric NAME=VALUE… [--step N]: reports metrics of the run that this process is part of.
#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "assay/verbs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "lineage/record/metrics_file.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

struct LogMetricOptions {
  std::vector<std::string> values;
  std::string step;
  bool parameter = false;
};

Result<std::pair<std::string, std::string>> split(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return base::fail(base::usage_error(fmt::format("log-metric '{}'", base::shortened(text, 200)),
                                        "is not NAME=VALUE", "for example loss=0.5"));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

// Unlike base::parse_number, accepts "nan" and "inf": a loss that diverged.
std::optional<double> value_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<base::Json> metric_json(const std::string& name, const std::string& text) {
  if (text == "true" || text == "false") return base::Json(text == "true");
  const auto value = value_in(text);
  if (!value) {
    return base::fail(
        base::usage_error(fmt::format("log-metric '{}'", base::shortened(name, 200)),
                          fmt::format("'{}' is not a number", base::shortened(text, 200)),
                          "a text is a parameter: assay log-metric --parameter NAME=VALUE"));
  }
  return std::isfinite(*value) ? base::Json(*value) : base::Json();
}

Result<std::string> line_of(const LogMetricOptions& options) {
  base::Json values = base::Json::object();
  for (const std::string& text : options.values) {
    ASSAY_TRY(const auto pair, split(text));
    if (options.parameter) {
      values[pair.first] = pair.second;
    } else {
      ASSAY_TRY(values[pair.first], metric_json(pair.first, pair.second));
    }
  }
  base::Json line;
  if (!options.step.empty()) {
    const auto step = base::parse_number<std::int64_t>(options.step);
    if (!step || options.parameter) {
      return base::fail(base::usage_error(
          "log-metric --step", options.parameter
                                   ? "parameters have no step"
                                   : fmt::format("'{}' is not a whole number", options.step)));
    }
    line["step"] = *step;
  }
  line[options.parameter ? "parameters" : "metrics"] = std::move(values);
  std::string text = base::json_line(line);
  if (!text.ends_with('\n')) text += '\n';
  lineage::Reported understood;
  if (!lineage::read_metrics_line(text, understood)) {
    return base::fail(base::usage_error("log-metric", "has a name that is not allowed",
                                        "one word of up to 200 bytes"));
  }
  return text;
}

Result<ExitCode> log_metric(const LogMetricOptions& options) {
  ASSAY_TRY(const std::string line, line_of(options));
  const char* file = std::getenv(lineage::kMetricsVariable.data());
  if (file == nullptr) {
    return base::fail(base::usage_error("log-metric", "it is not inside a recorded run",
                                        "use it in a command that `assay run` runs"));
  }
  // Appended in one write, so that processes of one run can report at the same time.
  const base::UniqueFd fd(::open(file, O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid() || !base::write_all(fd.get(), line)) {
    return base::fail(
        base::system_error(file, "cannot be written", errno, "the run may have ended"));
  }
  return ExitCode::kYes;
}

}  // namespace

Verb log_metric_verb(const Session&) {
  const auto options = std::make_shared<LogMetricOptions>();
  return {
      .name = "log-metric",
      .description = "record metrics or parameters of the run that calls it",
      .examples = {"assay run -- assay log-metric loss=0.5 accuracy=0.91 --step 100",
                   "assay run -- assay log-metric --parameter lr=0.1 optimizer=adam"},
      .arguments =
          {{"NAME=VALUE", "a number, true or false", nullptr, true, {}, false, &options->values}},
      .options = {{"--step", "step of these values; default: 0", &options->step, {}, "N"},
                  {"--parameter", "record parameters of the run instead: numbers or text",
                   &options->parameter}},
      .action = [options] { return log_metric(*options); }};
}

}  // namespace assay::cli
