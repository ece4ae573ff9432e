// SuiteOutcome: the published figures beside ours, each of ours labelled with its origin. Computed
// from the output of the cases and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/effect.h"
#include "suite/folder.h"

namespace assay::suite {

enum class Label {
  kMeasured,    // here, in this run
  kPlanned,     // computed
  kRecorded,    // measured earlier, elsewhere
  kImpossible,  // the machine lacks something that the case needs
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
  bool lacks_interval = false;  // it should have one, and the output has none
  bool in_fit = false;          // predicted by constants that were fitted to it
  std::string remark;           // its origin, or why there is no value
  std::string command;          // that produced a recorded value
};

struct FigureOutcome {
  const Figure* figure = nullptr;
  std::vector<Ours> ours;  // measured, recorded, planned: those that the figure has
};

struct TableOutcome {
  const FigureTable* table = nullptr;
  std::vector<FigureOutcome> figures;
};

using compare::IntervalVerdict;

struct GoalOutcome {
  const FigureTable* table = nullptr;
  const Figure* figure = nullptr;
  std::optional<Ours> ours;  // the value that was judged
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

// By where the interval lies, as for comparisons: all of it within the bound, all beyond, or
// neither.
IntervalVerdict judge(const Goal& goal, const Ours& ours, std::optional<double> published);

}  // namespace assay::suite
