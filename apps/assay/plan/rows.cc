// assay plan --rows and --calibrate: predictions of measured steps, and constants fitted to them.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "assay/plan/modes.h"
#include "assay/plan/pictures.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/terminal.h"
#include "base/text.h"
#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/scores.h"
#include "plan/prediction.h"

namespace assay::cli {
namespace {

using base::Json;

constexpr base::Bytes kLongestRows{std::int64_t{256} << 20};
constexpr std::size_t kMostSources = 60;

base::Result<std::vector<plan::Row>> read_rows(const std::string& path) {
  ASSAY_TRY(const std::string text, base::read_file(path, kLongestRows));
  return plan::parse_rows(text, path);
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "";
}

std::string as_percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

// Why there is no prediction, or what was assumed for it and which measured range it exceeds.
std::string reason_of(const plan::Row& row, const plan::RowPrediction& made,
                      const plan::Seen& seen) {
  constexpr base::Bytes kOneGib(std::int64_t{1} << 30);
  std::string reason = row.reason;
  const auto add = [&](const std::string& more) {
    if (!reason.empty()) reason += "; ";
    reason += more;
  };
  if (made.work == nullptr) return reason;
  const double mfu = made.step_s ? plan::mfu_of(*made.work, *made.step_s) : 0;
  for (const std::string& beyond : plan::extrapolations(*made.work, seen, mfu))
    add("outside the measured range: " + beyond);
  const double card_gib = made.work->card.memory / kOneGib;
  if (made.memory_gib && *made.memory_gib > card_gib)
    add(fmt::format("predicted memory: {:.4g} GiB on a device of {:.4g}", *made.memory_gib,
                    card_gib));
  return reason;
}

std::vector<std::string> reasons_of(const std::vector<plan::Row>& rows,
                                    const std::vector<plan::RowPrediction>& predictions,
                                    const plan::Seen& seen) {
  std::vector<std::string> reasons;
  reasons.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    reasons.push_back(reason_of(rows[i], predictions[i], seen));
  return reasons;
}

void print_csv(const Session& session, const std::vector<plan::Row>& rows,
               const std::vector<plan::RowPrediction>& predictions,
               const std::vector<std::string>& reasons) {
  std::string text = "id,step_s,pred_step_s,pred_low,pred_high,pred_mem_gb,reason\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const plan::RowPrediction& made = predictions[i];
    text += base::csv_field(rows[i].id) + ',' + number(rows[i].step_s) + ',' + number(made.step_s);
    if (made.step_s) {
      text += fmt::format(",{:.6g},{:.6g},", made.low, made.high);
    } else {
      text += ",,,";
    }
    text += number(made.memory_gib) + ',' + base::csv_field(reasons[i]) + '\n';
  }
  session.print(text);
}

Json rows_json(const std::vector<plan::Row>& rows,
               const std::vector<plan::RowPrediction>& predictions,
               const std::vector<std::string>& reasons) {
  Json all = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const plan::RowPrediction& made = predictions[i];
    all.push_back({{"id", rows[i].id},
                   {"source", rows[i].source},
                   {"step_s", base::or_null(rows[i].step_s)},
                   {"pred_step_s", base::or_null(made.step_s)},
                   {"pred_low", made.step_s ? Json(made.low) : Json(nullptr)},
                   {"pred_high", made.step_s ? Json(made.high) : Json(nullptr)},
                   {"pred_mem_gb", base::or_null(made.memory_gib)},
                   {"scored", plan::has_time(rows[i])},
                   {"assumed", rows[i].assumed},
                   {"reason", reasons[i]}});
  }
  return all;
}

Json errors_json(const plan::ErrorSummary& errors) {
  const auto percent = [&](double error) {
    return errors.rows > 0 ? Json(100 * error) : Json(nullptr);
  };
  return {{"rows", errors.rows},
          {"mean_abs_pct_error", percent(errors.mean)},
          {"median_abs_pct_error", percent(errors.median)}};
}

// Rows that are scored although the constants were fitted to rows of the same project. Their errors
// are smaller than those of unseen projects.
struct RowsInFit {
  bool known = false;  // what the constants were fitted to
  std::int64_t scored = 0;
  std::int64_t in_fit = 0;
  std::vector<std::string> projects;
};

RowsInFit rows_in_fit(const std::vector<plan::Row>& rows, const plan::Calibration& calibration) {
  RowsInFit found{.known = calibration.fitted_to && !calibration.fitted_to->own_error};
  for (const plan::Row& row : rows) {
    if (!plan::has_time(row)) continue;
    ++found.scored;
    if (!found.known) continue;
    const std::vector<std::string>& fitted = calibration.fitted_to->projects;
    if (std::find(fitted.begin(), fitted.end(), row.project) == fitted.end()) continue;
    ++found.in_fit;
    if (std::find(found.projects.begin(), found.projects.end(), row.project) ==
        found.projects.end()) {
      found.projects.push_back(row.project);
    }
  }
  return found;
}

std::string text_of(const RowsInFit& found) {
  constexpr std::size_t kMostNamed = 4;
  if (found.scored == 0) return {};
  if (!found.known) return "it is not known whether the constants were fitted to these rows\n";
  if (found.in_fit == 0) {
    return "the constants were fitted to none of the projects of these rows (column `project`)\n";
  }
  std::vector<std::string> named = found.projects;
  if (named.size() > kMostNamed) {
    named.resize(kMostNamed);
    named.push_back(fmt::format("{} more", found.projects.size() - kMostNamed));
  }
  return fmt::format(
      "the constants were fitted to the projects of {} of {} ({}): the errors below are smaller "
      "than for unseen projects\n",
      base::grouped(found.in_fit), base::counted(found.scored, "row"), fmt::join(named, ", "));
}

Json score_json(const plan::Score& score) {
  Json sources = Json::array();
  for (const plan::SourceScore& source : score.sources) {
    Json one = errors_json(source.time);
    one["source"] = source.source;
    sources.push_back(std::move(one));
  }
  return {{"step_time", errors_json(score.time)},
          {"interval_coverage", score.time.rows > 0 ? Json(score.coverage) : Json(nullptr)},
          {"memory", errors_json(score.memory)},
          {"sources", std::move(sources)}};
}

std::string errors_line(const char* what, const plan::ErrorSummary& errors) {
  if (errors.rows == 0) return fmt::format("{}: no row has a measurement to compare with\n", what);
  return fmt::format("{}: mean error {}, median {}, {}\n", what, as_percent(errors.mean),
                     as_percent(errors.median),
                     base::counted(static_cast<std::int64_t>(errors.rows), "row"));
}

std::string score_text(const plan::Score& score) {
  std::string text = errors_line("step time", score.time);
  if (score.time.rows > 0) {
    text += fmt::format("80 % intervals: {} of the measured steps are inside\n",
                        as_percent(score.coverage));
  }
  text += errors_line("memory", score.memory);
  for (const auto& [kind, of_kind] :
       {std::pair("dense models", score.dense), std::pair("mixtures", score.mixtures)}) {
    if (of_kind.projects == 0) continue;
    text += fmt::format("{}, {}{}: mean {}, median {}, worst {}, {} inside\n", kind,
                        base::counted(static_cast<std::int64_t>(of_kind.projects), "project"),
                        of_kind.projects == 1 ? "" : " with equal weight", as_percent(of_kind.mean),
                        as_percent(of_kind.median), as_percent(of_kind.worst),
                        as_percent(of_kind.coverage));
  }
  if (score.sources.size() < 2) return text;
  base::Table table({"rows", "mean %", "median %", "source"});
  std::vector<plan::SourceScore> shown = score.sources;
  if (shown.size() > kMostSources) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto& one, const auto& other) {
      return one.time.mean > other.time.mean;
    });
    shown.resize(kMostSources);
    text += fmt::format("the worst {} of {} sources\n", kMostSources,
                        base::grouped(static_cast<std::int64_t>(score.sources.size())));
  }
  for (const plan::SourceScore& source : shown) {
    table.row({base::grouped(static_cast<std::int64_t>(source.time.rows)),
               fmt::format("{:.2f}", 100 * source.time.mean),
               fmt::format("{:.2f}", 100 * source.time.median), source.source});
  }
  return text + table.text();
}

// What `assay train` wrote about its steps: their median, once the first ones have warmed up.
base::Result<plan::Row> measured_run(const std::string& path, const plan::Work& work) {
  constexpr std::size_t kWarmUp = 3;
  ASSAY_TRY(const std::string text, base::read_file(path, kLongestRows));
  std::vector<double> seconds;
  std::size_t line_number = 0;
  std::string line;
  for (std::istringstream lines(text); std::getline(lines, line);) {
    ++line_number;
    if (base::trim(line).empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    const auto found = json.is_object() ? json.find("seconds") : json.end();
    if (!json.is_object() || found == json.end() || !found->is_number()) {
      return base::fail(base::usage_error(fmt::format("{}:{}", path, line_number),
                                          "has no step time (key `seconds`)",
                                          "give the metrics.jsonl of assay train"));
    }
    seconds.push_back(found->get<double>());
  }
  if (seconds.empty()) {
    return base::fail(
        base::usage_error(path, "has no steps", "give the metrics.jsonl of assay train"));
  }
  if (seconds.size() <= kWarmUp) {
    return base::fail(base::usage_error(
        path,
        fmt::format("has only {}, and the first {} are warm-up",
                    base::counted(static_cast<std::int64_t>(seconds.size()), "step"), kWarmUp),
        "train a little longer"));
  }
  const double median = base::median({seconds.begin() + kWarmUp, seconds.end()});
  return plan::Row{.id = path, .source = path, .step_s = median, .candidates = {work}};
}

base::Result<plan::Calibration> calibrate_to_own(const PlanOptions& options,
                                                 std::vector<plan::Row>& rows) {
  ASSAY_TRY(const plan::Calibration general, calibration_by(options));
  ASSAY_TRY(const plan::Assumed assumed, assumed_by(options));
  ASSAY_TRY(const spec::Loaded loaded, load_job(options));
  ASSAY_TRY(const plan::Prediction made,
            plan::predict(std::get<spec::JobSpec>(loaded.spec), assumed,
                          {general.constants, general.memory}));
  for (const std::string& path : options.calibrate) {
    ASSAY_TRY(plan::Row row, measured_run(path, made.work));
    rows.push_back(std::move(row));
  }
  return plan::calibrate_to_runs(rows, general);
}

base::Result<plan::Calibration> calibrate_to_tables(const PlanOptions& options,
                                                    std::vector<plan::Row>& rows) {
  for (const std::string& path : options.calibrate) {
    ASSAY_TRY(std::vector<plan::Row> more, read_rows(path));
    rows.insert(rows.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
  return plan::calibrate(rows);
}

}  // namespace

base::Result<base::ExitCode> plan_rows(const Session& session, const PlanOptions& options) {
  ASSAY_TRY_VOID(check_svg(options));
  ASSAY_TRY(const plan::Calibration calibration, calibration_by(options));
  ASSAY_TRY(const std::vector<plan::Row> rows, read_rows(options.rows));
  const std::vector<plan::RowPrediction> predictions = plan::predict_all(rows, calibration);
  const plan::Score score = plan::score(rows, predictions);
  const auto reasons = reasons_of(rows, predictions, calibration.seen);
  const RowsInFit fitted = rows_in_fit(rows, calibration);
  if (session.json) {
    Json summary = score_json(score);
    summary["rows_in_fit"] = fitted.known ? Json(fitted.in_fit) : Json(nullptr);
    summary["projects_in_fit"] = fitted.projects;
    session.print_json(
        {{"rows", rows_json(rows, predictions, reasons)}, {"summary", std::move(summary)}});
  } else {
    print_csv(session, rows, predictions, reasons);
  }
  if (!session.quiet) base::write_stderr(text_of(fitted) + score_text(score));
  if (!options.svg.empty()) ASSAY_TRY_VOID(draw_rows(session, rows, predictions, options.svg));
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> plan_calibrate(const Session& session, const PlanOptions& options) {
  if (!options.out.empty())
    ASSAY_TRY_VOID(base::check_output(options.out, base::printable(options.out)));
  std::vector<plan::Row> rows;
  const bool own = !options.job.empty();
  ASSAY_TRY(const plan::Calibration calibration,
            own ? calibrate_to_own(options, rows) : calibrate_to_tables(options, rows));
  const std::string text = plan::to_json(calibration);
  if (options.out.empty()) {
    session.print(text);
    session.print_json(Json::parse(text));
    if (session.quiet) return base::ExitCode::kYes;
  } else {
    ASSAY_TRY_VOID(base::write_output(options.out, text));
  }
  const plan::Score fitted = plan::score(rows, plan::predict_all(rows, calibration));
  std::optional<plan::Score> left_out;
  if (!own) left_out = plan::score(rows, plan::cross_validate(rows));
  if (!options.out.empty()) {
    session.print_json({{"constants", options.out},
                        {"fitted", score_json(fitted)},
                        {"left_out", left_out ? score_json(*left_out) : Json(nullptr)}});
  }
  if (!session.quiet) {
    std::string summary =
        "with the new constants, which were fitted to these rows\n" + score_text(fitted);
    if (left_out) {
      summary +=
          "\neach project predicted with constants fitted without it\n" + score_text(*left_out);
    }
    base::write_stderr(summary);
  }
  if (!options.out.empty()) {
    session.next(fmt::format("assay plan JOB --constants {}", base::shell_quoted(options.out)));
  }
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
