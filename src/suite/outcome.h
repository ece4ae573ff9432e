// SuiteOutcome: the published figures next to ours, each of ours labelled with its origin. Computed
// only from the output of the cases.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/effect.h"
#include "suite/folder.h"

namespace assay::suite {

enum class FigureLabel {
  kMeasured,    // in this run, on this machine
  kPlanned,     // computed
  kRecorded,    // measured earlier, elsewhere
  kImpossible,  // the machine lacks a requirement of the case
  kFailed,
  kLeftOut,
  kNotReached,
};
std::string_view to_text(FigureLabel label);

struct OurValue {
  FigureLabel label = FigureLabel::kImpossible;
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;
  bool lacks_interval = false;  // an interval was expected, but the output has none
  bool in_fit = false;          // the planner's constants were fitted to it
  std::string remark;           // its origin, or why there is no value
  std::string command;          // the command that produced a recorded value
};

struct FigureOutcome {
  const Figure* figure = nullptr;
  std::vector<OurValue> ours;  // measured, recorded, planned, as far as the figure has them
};

struct TableOutcome {
  const FigureTable* table = nullptr;
  std::vector<FigureOutcome> figures;
};

using compare::IntervalVerdict;

struct GoalOutcome {
  const FigureTable* table = nullptr;
  const Figure* figure = nullptr;
  std::optional<OurValue> ours;  // the value that was judged
  IntervalVerdict verdict = IntervalVerdict::kNotJudged;
  std::string note;
};

struct SuiteOutcome {
  const SuiteFolder* folder = nullptr;
  std::vector<CaseRun> cases;
  std::vector<TableOutcome> tables;
  std::vector<GoalOutcome> goals;

  [[nodiscard]] bool any_failed() const;
  [[nodiscard]] bool interrupted() const;
};

// `folder` must outlive the outcome.
SuiteOutcome outcome_of(const SuiteFolder& folder, std::vector<CaseRun> cases);

// Judged by the position of the interval, as in comparisons: entirely within the bound, entirely
// beyond it, or neither.
IntervalVerdict judge(const Goal& goal, const OurValue& ours, std::optional<double> published);

}  // namespace assay::suite
