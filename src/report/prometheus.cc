#include "report/prometheus.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace assay::report {
namespace {

// Names may have letters, digits and underscores.
std::string metric_name(std::string_view name) {
  std::string safe = "assay_run_";
  for (const char c : name) {
    const bool fine = base::is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    safe += fine ? c : '_';
  }
  return safe;
}

// Of a label: UTF-8, with backslash, quote and line feed escaped.
std::string label_text(std::string_view text) {
  std::string utf8 = base::Json::parse(
      base::Json(text).dump(-1, ' ', false, base::Json::error_handler_t::replace));
  std::string safe;
  for (const char c : utf8) {
    if (c == '\\' || c == '"') safe += '\\';
    if (c == '\n') {
      safe += "\\n";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string help_text(std::string_view text) {
  std::string safe;
  for (const char c : label_text(text)) {
    if (c == '"' && !safe.empty() && safe.back() == '\\') safe.pop_back();
    safe += c;
  }
  return safe;
}

struct Gauge {
  std::string help;
  std::vector<std::pair<std::int64_t, std::optional<double>>> values;  // by process
};

}  // namespace

std::string prometheus(const ReportedRun& run) {
  const std::string labels = fmt::format("run=\"{}\",uid=\"{}\",run=\"{}\"", run.record.id,
                                         label_text(run.record.uid), label_text(run.record.name));
  std::string out;
  const auto one = [&](const char* name, const char* help, double value) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} gauge\n{0}{{{2}}} {3}\n",
                   name, help, labels, value);
  };
  one("assay_run_up", "1 while the run runs",
      run.record.status == store::RunStatus::kRunning ? 1 : 0);
  one("assay_run_started_seconds", "when it began, since 1970",
      static_cast<double>(run.record.started_unix_ns / 1'000'000) / 1e3);
  one("assay_run_ran_seconds", "how long it has run", ran_s(run));
  std::map<std::string, Gauge> gauges;  // names may become equal
  const std::set<std::string> taken = {"assay_run_up", "assay_run_started_seconds",
                                       "assay_run_ran_seconds", "assay_run_step"};
  Gauge& steps = gauges["assay_run_step"];
  steps.help = "the last step that was measured";
  std::map<std::int64_t, std::int64_t> last_steps;
  for (const store::MetricSeries& series : run.metrics) {
    if (series.points.empty()) continue;
    std::int64_t& last = last_steps[series.source];
    last = std::max(last, series.points.back().step);
    const std::string name = metric_name(series.name);
    if (taken.contains(name)) continue;
    Gauge& gauge = gauges[name];
    gauge.help = series.name + (series.unit.empty() ? "" : ", " + series.unit) + ", last value";
    const bool again = !gauge.values.empty() && gauge.values.back().first == series.source;
    if (!again) gauge.values.emplace_back(series.source, series.points.back().value);
  }
  for (const auto& [source, step] : last_steps) {
    steps.values.emplace_back(source, static_cast<double>(step));
  }
  for (const auto& [name, gauge] : gauges) {
    if (gauge.values.empty()) continue;
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help_text(gauge.help));
    for (const auto& [source, value] : gauge.values) {
      out += fmt::format("{}{{{},process=\"{}\"}} {}\n", name, labels, source,
                         value ? fmt::format("{}", *value) : "NaN");
    }
  }
  return out;
}

}  // namespace assay::report
