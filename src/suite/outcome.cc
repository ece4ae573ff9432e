#include "suite/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"

namespace assay::suite {
namespace {

using compare::Metric;
using compare::MetricKind;

constexpr base::Bytes kLargestStepOutput(std::int64_t{256} << 20);

Label label_of(StepState state) {
  switch (state) {
    case StepState::kDone:
      return Label::kMeasured;
    case StepState::kFailed:
      return Label::kFailed;
    case StepState::kImpossible:
      return Label::kImpossible;
    case StepState::kLeftOut:
      return Label::kLeftOut;
    case StepState::kNotReached:
      break;
  }
  return Label::kNotReached;
}

// No figure, and why.
Ours without(Label label, std::string why) {
  return {.label = label, .remark = std::move(why)};
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Reads figures out of what steps left.
class FigureFinder {
 public:
  FigureFinder(const SuiteFolder& folder, const std::vector<StepRun>& steps)
      : folder_(folder), steps_(steps) {}

  [[nodiscard]] FigureOutcome find(const Figure& figure) const {
    FigureOutcome found{.figure = &figure};
    if (figure.measured) found.ours.push_back(from_step(*figure.measured, Label::kMeasured));
    if (!figure.why.empty()) found.ours.push_back(without(Label::kImpossible, figure.why));
    if (figure.recorded) found.ours.push_back(from_record(*figure.recorded));
    if (figure.planned) found.ours.push_back(from_step(*figure.planned, Label::kPlanned));
    return found;
  }

 private:
  [[nodiscard]] const StepRun* run_of(const std::string& step) const {
    const auto found = std::find_if(steps_.begin(), steps_.end(),
                                    [&](const StepRun& run) { return run.step == step; });
    return found == steps_.end() ? nullptr : &*found;
  }

  [[nodiscard]] Ours from_step(const Source& source, Label when_done) const {
    const StepRun* run = run_of(source.step);
    const StepRun* divisor = source.per_step.empty() ? run : run_of(source.per_step);
    for (const StepRun* each : {run, divisor}) {
      if (each == nullptr) return without(Label::kNotReached, "the step did not run");
      if (each->state != StepState::kDone) {
        return without(label_of(each->state),
                       each == run ? each->why : fmt::format("{}: {}", each->step, each->why));
      }
    }
    std::vector<double> values;
    Ours ours{.label = when_done, .remark = source.note};
    for (std::size_t i = 0; i < run->outputs.size(); ++i) {
      const auto value = scaled_at(source, source.value, *run, i);
      if (!value) return not_there(source, value.error());
      values.push_back(*value);
    }
    if (values.empty()) return without(Label::kFailed, "the step left nothing");
    ours.value = median_of(values);
    if (values.size() > 1) {
      ours.low = *std::min_element(values.begin(), values.end());
      ours.high = *std::max_element(values.begin(), values.end());
      ours.remark = fmt::format("median of {}, least to most{}{}", values.size(),
                                source.note.empty() ? "" : "; ", source.note);
      return ours;
    }
    for (const auto& [metric, bound] :
         {std::pair(&source.low, &ours.low), std::pair(&source.high, &ours.high)}) {
      if (!*metric) continue;
      const auto value = scaled_at(source, **metric, *run, 0);
      if (value) {
        *bound = *value;
      } else {  // such as a comparison of one pair
        ours.unsure = true;
        ours.remark = fmt::format("no interval: {}{}{}", value.error().what,
                                  source.note.empty() ? "" : "; ", source.note);
      }
    }
    if (ours.low && ours.high && *ours.low > *ours.high) std::swap(ours.low, ours.high);
    return ours;
  }

  static Ours not_there(const Source& source, const base::Error& error) {
    if (!source.missing.empty()) return without(Label::kImpossible, source.missing);
    return without(Label::kFailed, error.what);
  }

  [[nodiscard]] base::Result<double> value_at(const Metric& metric, const StepRun& run,
                                              std::size_t repetition) const {
    if (metric.kind == MetricKind::kWall) {
      if (repetition < run.wall_s.size()) return run.wall_s[repetition];
      return base::fail(base::unfit_error("", "nobody noted how long it took"));
    }
    ASSAY_TRY(const std::string output,
              base::read_file(folder_.directory() / run.outputs[repetition], kLargestStepOutput));
    return compare::value_in(metric, output);
  }

  // What a value of `run` is divided by; of another step that was repeated, the median.
  [[nodiscard]] base::Result<double> divisor_at(const Source& source, const StepRun& run,
                                                std::size_t repetition) const {
    if (source.per_step.empty()) return value_at(*source.per, run, repetition);
    const StepRun& other = *run_of(source.per_step);
    std::vector<double> values;
    for (std::size_t i = 0; i < other.outputs.size(); ++i) {
      ASSAY_TRY(const double value, value_at(*source.per, other, i));
      values.push_back(value);
    }
    if (values.empty()) return base::fail(base::unfit_error("", "the step left nothing"));
    return median_of(std::move(values));
  }

  [[nodiscard]] base::Result<double> scaled_at(const Source& source, const Metric& metric,
                                               const StepRun& run, std::size_t repetition) const {
    ASSAY_TRY(double value, value_at(metric, run, repetition));
    if (source.per) {
      ASSAY_TRY(const double divisor, divisor_at(source, run, repetition));
      value /= divisor;
    }
    value = (source.over ? *source.over / value : value) * source.times;
    if (std::isfinite(value)) return value;
    return base::fail(base::unfit_error("", "it makes no finite number"));
  }

  static Ours from_record(const Recorded& recorded) {
    return {
        .label = Label::kRecorded,
        .value = recorded.value,
        .low = recorded.low,
        .high = recorded.high,
        .remark = fmt::format("{}, {}, {}{}{}", recorded.machine, recorded.date, recorded.commit,
                              recorded.note.empty() ? "" : "; ", recorded.note),
        .command = recorded.command};
  }

  const SuiteFolder& folder_;
  const std::vector<StepRun>& steps_;
};

GoalOutcome goal_of(const SuiteFolder& folder, const FigureTable& table,
                    const FigureOutcome& found) {
  GoalOutcome outcome{.table = &table, .figure = found.figure};
  const auto has_value = [](const Ours& ours) { return ours.value.has_value(); };
  // What is within so much of a published figure is a plan, where there is one.
  const auto is_plan = [&](const Ours& ours) {
    return has_value(ours) && ours.label == Label::kPlanned;
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
  if (folder.quick() && known->label == Label::kMeasured) {
    outcome.note = "a quick run is too short to judge by";
    return outcome;
  }
  outcome.verdict = judge(*found.figure->goal, *known, found.figure->published);
  outcome.note = std::string(to_text(known->label));
  if (known->label == Label::kRecorded) outcome.note += ": " + known->remark;
  return outcome;
}

}  // namespace

std::string_view to_text(Label label) {
  switch (label) {
    case Label::kMeasured:
      return "measured";
    case Label::kPlanned:
      return "planned";
    case Label::kRecorded:
      return "recorded";
    case Label::kImpossible:
      return "not possible here";
    case Label::kFailed:
      return "failed";
    case Label::kLeftOut:
      return "left out";
    case Label::kNotReached:
      break;
  }
  return "not reached";
}

bool Outcome::any_failed() const {
  const bool step = std::any_of(steps.begin(), steps.end(),
                                [](const StepRun& run) { return run.state == StepState::kFailed; });
  bool figure = false;
  for (const TableOutcome& table : tables) {
    for (const FigureOutcome& found : table.figures) {
      for (const Ours& ours : found.ours) figure = figure || ours.label == Label::kFailed;
    }
  }
  return step || figure;
}

bool Outcome::interrupted() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const StepRun& run) { return run.state == StepState::kNotReached; });
}

Outcome outcome_of(const SuiteFolder& folder, std::vector<StepRun> steps) {
  Outcome outcome{.folder = &folder, .steps = std::move(steps)};
  const FigureFinder finder(folder, outcome.steps);
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

}  // namespace assay::suite
