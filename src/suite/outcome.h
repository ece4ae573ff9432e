// Outcome: the published figures beside ours, each of ours with how we come by it. Made from what
// steps left and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "suite/folder.h"

namespace assay::suite {

enum class Label {
  kMeasured,    // here, in this run
  kPlanned,     // computed
  kRecorded,    // measured earlier, elsewhere
  kImpossible,  // the machine lacks something
  kFailed,
  kLeftOut,
  kNotReached,
};
std::string_view to_text(Label label);

struct Ours {
  Label label = Label::kImpossible;
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;
  bool unsure = false;  // it should have an interval, and the step does not tell one
  std::string remark;   // where it is from, or why there is none
  std::string command;  // of what was recorded
};

struct FigureOutcome {
  const Figure* figure = nullptr;
  std::vector<Ours> ours;  // measured, recorded, planned: those that the figure names
};

struct TableOutcome {
  const FigureTable* table = nullptr;
  std::vector<FigureOutcome> figures;
};

enum class GoalVerdict { kPass, kFail, kInconclusive, kNotJudged };
std::string_view to_text(GoalVerdict verdict);

struct GoalOutcome {
  const FigureTable* table = nullptr;
  const Figure* figure = nullptr;
  std::optional<Ours> ours;  // what it was judged by
  GoalVerdict verdict = GoalVerdict::kNotJudged;
  std::string note;
};

struct Outcome {
  const SuiteFolder* folder = nullptr;
  std::vector<StepRun> steps;
  std::vector<TableOutcome> tables;
  std::vector<GoalOutcome> goals;

  [[nodiscard]] bool any_failed() const;
  [[nodiscard]] bool interrupted() const;
};

// `folder` must outlive the outcome.
Outcome outcome_of(const SuiteFolder& folder, std::vector<StepRun> steps);

// By where the interval lies, as of comparisons: all of it within the bound, all beyond, neither.
GoalVerdict judge(const Goal& goal, const Ours& ours, std::optional<double> published);

// As people read it: "measured (quick)", "+0.31 [-0.20, +0.85]", "+1.2 %".
std::string label_text(const Outcome& outcome, const Ours& ours);
std::string value_text(const FigureTable& table, const Ours& ours);
std::string published_text(const FigureTable& table, const Figure& figure);
// Where ours is from, and what is different about the figure.
std::string remark_text(const Figure& figure, const Ours& ours);
// Of a planned figure against the published one, in percent of it; else nothing.
std::string difference_text(const Figure& figure, const Ours& ours);

base::Json to_json(const Outcome& outcome);

// outcome_chart.cc: the figures of a table that stand on its chart, as the lines of a drawing; null
// where there are none.
base::Json chart_json(const TableOutcome& found);

}  // namespace assay::suite
