// Suite: a published experiment as data: its figures, and the cases that produce ours. A case runs
// something; a figure is read from the output of a case, was recorded earlier, or has no value and
// says why.
//
// The kind of a case determines the label of its figures: `plan`, `rows` and `collective` compute,
// so their figures are planned; `compare` and `command` run something here, so theirs are measured.
// A file cannot override that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "compare/metric.h"
#include "spec/value.h"

namespace assay::suite {

// A goal for a figure, as written in the file.
enum class GoalKind {
  kAtMost,
  kAtLeast,
  kSizeAtMost,  // limits the absolute value
  kWithin,
};
struct Goal {
  GoalKind kind = GoalKind::kAtMost;
  double bound = 0;  // kWithin: percent of the published figure
  std::string text;  // as written: "<= 1"
};

// "<= 1", ">= 0.9", "|x| <= 0.1", "within 15%"
base::Result<Goal> parse_goal(std::string_view text);

enum class CaseKind {
  kPlan,        // arguments of `assay plan`
  kRows,        // measured rows as CSV, for `assay plan --rows`
  kCollective,  // a collective on a cluster
  kCompare,     // an experiment of `assay compare`
  kCommand,     // a shell command
};
std::string_view to_text(CaseKind kind);
// Whether it runs something on this machine, so that its figures count as measured.
bool measures(CaseKind kind);

// A machine's requirements for a case.
struct Needs {
  std::int64_t gpus = 0;
  std::optional<base::Bytes> gpu_memory;  // of each
  bool nvlink = false;                    // between them
  std::string tracer;
  std::vector<std::string> programs;
  std::string works;  // a shell command that must succeed
  std::string hint;   // how to get a missing program, or what it means if `works` fails
};

using Settings = std::map<std::string, std::string, std::less<>>;

struct SuiteCase {
  std::string name;
  CaseKind kind = CaseKind::kCommand;
  std::string text;  // as written, with @{settings} in it
  Settings with;     // override the suite's
  Needs needs;
  base::Seconds limit;
  std::int64_t repeat = 1;  // for commands: figures are the median; once in a quick run
  bool quick = true;        // part of a quick run
  bool in_fit = false;      // the planner's constants were fitted to what the case predicts
  spec::Origin origin;      // of `text`
};

// Where a figure is in the output of a case.
struct FigureSource {
  std::string case_name;
  compare::ComparedMetric value;
  std::optional<compare::ComparedMetric> low;
  std::optional<compare::ComparedMetric> high;
  std::optional<compare::ComparedMetric> per;  // another value to divide by
  std::string per_case;                        // the case with that value; empty: the same case
  double times = 1;                            // factor
  std::optional<double> over;                  // this is divided by the value
  std::string missing;                         // why it may be missing
  std::string note;                            // how it differs from the published quantity
};

// Measured earlier, elsewhere, and stored in the suite.
struct RecordedValue {
  double value = 0;
  std::optional<double> low;  // of its interval, if any
  std::optional<double> high;
  std::string note;  // how it differs from the published quantity
  std::string machine;
  std::string date;
  std::string commit;
  std::string command;
};

struct Figure {
  std::string what;
  std::optional<double> published;
  std::string published_as;  // if it is not a number: "< 5 s"
  std::optional<FigureSource> measured;
  std::optional<FigureSource> planned;
  std::optional<RecordedValue> recorded;
  std::optional<Goal> goal;
  std::string why;   // why nothing is measured
  std::string note;  // how it differs from the published quantity
  // Position on the table's chart, and the line that it belongs to; empty: not on the chart.
  double x = 0;
  std::string line;
};

// The ideal line of a chart, from its first published figure.
enum class Ideal {
  kNone,
  kSame,    // constant: shares
  kLinear,  // proportional to x: amounts
};

struct FigureChart {
  std::string x;  // title of the axis: "GPUs"
  Ideal ideal = Ideal::kNone;
};

struct FigureTable {
  std::string title;
  std::string unit;
  bool is_signed = false;  // positive values get a +
  std::string note;
  std::optional<FigureChart> chart;
  std::vector<Figure> figures;
};

struct Suite {
  std::string name;
  std::string text;  // the file
  std::string source;
  std::string title;
  std::string reproduces;  // the published experiment
  std::string url;
  std::string note;
  Settings settings;
  Settings quick;  // override them in a quick run
  std::vector<SuiteCase> cases;
  std::vector<FigureTable> tables;

  // Null if there is none.
  [[nodiscard]] const SuiteCase* find_case(std::string_view case_name) const;
};

// The text of a case with every @{setting} replaced; settings may use others.
base::Result<std::string> filled_in(const Suite& suite, const SuiteCase& suite_case, bool quick);

}  // namespace assay::suite
