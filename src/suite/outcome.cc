#include "suite/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/statistics.h"

namespace assay::suite {
namespace {

using compare::ComparedMetric;
using compare::MetricKind;

constexpr base::Bytes kLargestCaseOutput(std::int64_t{256} << 20);

FigureLabel label_of(CaseState state) {
  switch (state) {
    case CaseState::kDone:
      return FigureLabel::kMeasured;
    case CaseState::kFailed:
      return FigureLabel::kFailed;
    case CaseState::kImpossible:
      return FigureLabel::kImpossible;
    case CaseState::kLeftOut:
      return FigureLabel::kLeftOut;
    case CaseState::kNotReached:
      break;
  }
  return FigureLabel::kNotReached;
}

OurValue without(FigureLabel label, std::string why) {
  return {.label = label, .remark = std::move(why)};
}

// Reads figures from the output of cases.
class FigureFinder {
 public:
  FigureFinder(const SuiteFolder& folder, const std::vector<CaseRun>& cases)
      : folder_(folder), cases_(cases) {}

  [[nodiscard]] FigureOutcome find(const Figure& figure) const {
    FigureOutcome found{.figure = &figure};
    if (figure.measured) found.ours.push_back(from_case(*figure.measured, FigureLabel::kMeasured));
    if (!figure.why.empty()) found.ours.push_back(without(FigureLabel::kImpossible, figure.why));
    if (figure.recorded) found.ours.push_back(from_record(*figure.recorded));
    if (figure.planned) found.ours.push_back(from_case(*figure.planned, FigureLabel::kPlanned));
    return found;
  }

 private:
  [[nodiscard]] const CaseRun* run_of(const std::string& name) const {
    const auto found = std::find_if(cases_.begin(), cases_.end(),
                                    [&](const CaseRun& run) { return run.name == name; });
    return found == cases_.end() ? nullptr : &*found;
  }

  [[nodiscard]] OurValue from_case(const FigureSource& source, FigureLabel when_done) const {
    const CaseRun* run = run_of(source.case_name);
    const CaseRun* divisor = source.per_case.empty() ? run : run_of(source.per_case);
    for (const CaseRun* each : {run, divisor}) {
      if (each == nullptr) return without(FigureLabel::kNotReached, "the case did not run");
      if (each->state != CaseState::kDone) {
        return without(label_of(each->state),
                       each == run ? each->why : fmt::format("{}: {}", each->name, each->why));
      }
    }
    std::vector<double> values;
    OurValue ours{.label = when_done, .remark = source.note};
    const SuiteCase* made_by = folder_.suite().find_case(source.case_name);
    ours.in_fit = when_done == FigureLabel::kPlanned && made_by != nullptr && made_by->in_fit;
    for (std::size_t i = 0; i < run->outputs.size(); ++i) {
      const auto value = scaled_at(source, source.value, *run, i);
      if (!value) return not_there(source, value.error());
      values.push_back(*value);
    }
    if (values.empty()) return without(FigureLabel::kFailed, "the case has no output");
    ours.value = base::median(values);
    if (values.size() > 1) {
      ours.low = *std::min_element(values.begin(), values.end());
      ours.high = *std::max_element(values.begin(), values.end());
      ours.remark = fmt::format("median of {}, smallest to largest{}{}", values.size(),
                                source.note.empty() ? "" : "; ", source.note);
      return ours;
    }
    for (const auto& [metric, bound] :
         {std::pair(&source.low, &ours.low), std::pair(&source.high, &ours.high)}) {
      if (!*metric) continue;
      const auto value = scaled_at(source, **metric, *run, 0);
      if (value) {
        *bound = *value;
      } else {  // for example a comparison of one pair
        ours.lacks_interval = true;
        ours.remark = fmt::format("no interval: {}{}{}", value.error().what,
                                  source.note.empty() ? "" : "; ", source.note);
      }
    }
    if (ours.low && ours.high && *ours.low > *ours.high) std::swap(ours.low, ours.high);
    return ours;
  }

  static OurValue not_there(const FigureSource& source, const base::Error& error) {
    if (!source.missing.empty()) return without(FigureLabel::kImpossible, source.missing);
    return without(FigureLabel::kFailed, error.what);
  }

  [[nodiscard]] base::Result<double> value_at(const ComparedMetric& metric, const CaseRun& run,
                                              std::size_t repetition) const {
    if (metric.kind == MetricKind::kWall) {
      if (repetition < run.wall_s.size()) return run.wall_s[repetition];
      return base::fail(base::unfit_error("", "its duration was not recorded"));
    }
    ASSAY_TRY(const std::string output,
              base::read_file(folder_.directory() / run.outputs[repetition], kLargestCaseOutput));
    return compare::value_in(metric, output);
  }

  // The divisor of a value of `run`; the median if it is of another case that was repeated.
  [[nodiscard]] base::Result<double> divisor_at(const FigureSource& source, const CaseRun& run,
                                                std::size_t repetition) const {
    if (source.per_case.empty()) return value_at(*source.per, run, repetition);
    const CaseRun& other = *run_of(source.per_case);
    std::vector<double> values;
    for (std::size_t i = 0; i < other.outputs.size(); ++i) {
      ASSAY_TRY(const double value, value_at(*source.per, other, i));
      values.push_back(value);
    }
    if (values.empty()) return base::fail(base::unfit_error("", "the case has no output"));
    return base::median(std::move(values));
  }

  [[nodiscard]] base::Result<double> scaled_at(const FigureSource& source,
                                               const ComparedMetric& metric, const CaseRun& run,
                                               std::size_t repetition) const {
    ASSAY_TRY(double value, value_at(metric, run, repetition));
    if (source.per) {
      ASSAY_TRY(const double divisor, divisor_at(source, run, repetition));
      value /= divisor;
    }
    value = (source.over ? *source.over / value : value) * source.times;
    if (std::isfinite(value)) return value;
    return base::fail(base::unfit_error("", "the result is not a finite number"));
  }

  static OurValue from_record(const RecordedValue& recorded) {
    return {
        .label = FigureLabel::kRecorded,
        .value = recorded.value,
        .low = recorded.low,
        .high = recorded.high,
        .remark = fmt::format("{}, {}, {}{}{}", recorded.machine, recorded.date, recorded.commit,
                              recorded.note.empty() ? "" : "; ", recorded.note),
        .command = recorded.command};
  }

  const SuiteFolder& folder_;
  const std::vector<CaseRun>& cases_;
};

GoalOutcome goal_of(const SuiteFolder& folder, const FigureTable& table,
                    const FigureOutcome& found) {
  GoalOutcome outcome{.table = &table, .figure = found.figure};
  const auto has_value = [](const OurValue& ours) { return ours.value.has_value(); };
  // Goals relative to a published figure judge the plan, if there is one.
  const auto is_plan = [&](const OurValue& ours) {
    return has_value(ours) && ours.label == FigureLabel::kPlanned;
  };
  auto known = found.ours.end();
  if (found.figure->goal->kind == GoalKind::kWithin) {
    known = std::find_if(found.ours.begin(), found.ours.end(), is_plan);
  }
  if (known == found.ours.end()) {
    known = std::find_if(found.ours.begin(), found.ours.end(), has_value);
  }
  if (known == found.ours.end()) {
    outcome.note =
        fmt::format("{}: {}", to_text(found.ours.front().label), found.ours.front().remark);
    return outcome;
  }
  outcome.ours = *known;
  if (folder.quick() && known->label == FigureLabel::kMeasured) {
    outcome.note = "a quick run is too short to judge by";
    return outcome;
  }
  outcome.verdict = judge(*found.figure->goal, *known, found.figure->published);
  outcome.note = std::string(to_text(known->label));
  if (known->label == FigureLabel::kRecorded) outcome.note += ": " + known->remark;
  return outcome;
}

}  // namespace

std::string_view to_text(FigureLabel label) {
  switch (label) {
    case FigureLabel::kMeasured:
      return "measured";
    case FigureLabel::kPlanned:
      return "planned";
    case FigureLabel::kRecorded:
      return "recorded";
    case FigureLabel::kImpossible:
      return "not possible here";
    case FigureLabel::kFailed:
      return "failed";
    case FigureLabel::kLeftOut:
      return "left out";
    case FigureLabel::kNotReached:
      break;
  }
  return "not reached";
}

bool SuiteOutcome::any_failed() const {
  const bool any_case = std::any_of(cases.begin(), cases.end(), [](const CaseRun& run) {
    return run.state == CaseState::kFailed;
  });
  bool figure = false;
  for (const TableOutcome& table : tables) {
    for (const FigureOutcome& found : table.figures) {
      for (const OurValue& ours : found.ours) figure = figure || ours.label == FigureLabel::kFailed;
    }
  }
  return any_case || figure;
}

bool SuiteOutcome::interrupted() const {
  return std::any_of(cases.begin(), cases.end(),
                     [](const CaseRun& run) { return run.state == CaseState::kNotReached; });
}

SuiteOutcome outcome_of(const SuiteFolder& folder, std::vector<CaseRun> cases) {
  SuiteOutcome outcome{.folder = &folder, .cases = std::move(cases)};
  const FigureFinder finder(folder, outcome.cases);
  for (const FigureTable& table : folder.suite().tables) {
    TableOutcome made{.table = &table};
    for (const Figure& figure : table.figures) {
      made.figures.push_back(finder.find(figure));
      if (figure.goal) outcome.goals.push_back(goal_of(folder, table, made.figures.back()));
    }
    outcome.tables.push_back(std::move(made));
  }
  return outcome;
}

IntervalVerdict judge(const Goal& goal, const OurValue& ours, std::optional<double> published) {
  if (!ours.value || !std::isfinite(*ours.value)) return IntervalVerdict::kNotJudged;
  const auto verdict = [](bool all_within, bool all_beyond) {
    if (all_within) return IntervalVerdict::kPass;
    return all_beyond ? IntervalVerdict::kFail : IntervalVerdict::kInconclusive;
  };
  if (ours.lacks_interval && ours.label == FigureLabel::kMeasured)
    return IntervalVerdict::kInconclusive;
  if (goal.kind == GoalKind::kWithin) {
    if (!published || *published == 0) return IntervalVerdict::kNotJudged;
    // By the figure alone: a plan's interval is its uncertainty, not its accuracy.
    const double off = std::abs(*ours.value / *published - 1) * 100;
    return verdict(off <= goal.bound, off > goal.bound);
  }
  const double low = ours.low.value_or(*ours.value);
  const double high = ours.high.value_or(*ours.value);
  if (goal.kind == GoalKind::kSizeAtMost) {
    return verdict(low >= -goal.bound && high <= goal.bound,
                   low > goal.bound || high < -goal.bound);
  }
  if (goal.kind == GoalKind::kAtMost) return verdict(high <= goal.bound, low > goal.bound);
  return verdict(low >= goal.bound, high < goal.bound);
}

}  // namespace assay::suite
