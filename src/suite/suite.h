// Suite: an experiment that somebody published, as data: their figures, and the steps that make
// ours. A step runs something; a figure is read from what a step left, or was recorded earlier, or
// stands there without a counterpart and says why.
//
// What a step is decides how its figures are labelled: `plan`, `rows` and `collective` only
// compute, so what comes from them is planned; `compare` and `command` run something here, so what
// comes from them is measured. A file cannot say otherwise.
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

enum class StepKind {
  kPlan,        // arguments of `assay plan`
  kRows,        // measured rows as CSV, for `assay plan --rows`
  kCollective,  // a collective on a cluster
  kCompare,     // an experiment of `assay compare`
  kCommand,     // a shell command
};
std::string_view to_text(StepKind kind);
// Whether it runs something on this machine, so that what comes from it is measured.
bool measures(StepKind kind);

// What a machine must have before a step makes sense on it.
struct Needs {
  std::int64_t gpus = 0;
  std::optional<base::Bytes> gpu_memory;  // of each
  bool nvlink = false;                    // between them
  std::string tracer;
  std::vector<std::string> programs;
  std::string works;  // a shell command that succeeds where the step makes sense
  std::string hint;   // how to get a program that is missing; what it means that `works` fails
};

using Settings = std::map<std::string, std::string, std::less<>>;

struct Step {
  std::string name;
  StepKind kind = StepKind::kCommand;
  std::string text;  // as written, with @{settings} in it
  Settings with;     // over the suite's
  Needs needs;
  base::Seconds limit;
  std::int64_t repeat = 1;  // of commands: the figure is the median; a quick run does it once
  bool quick = true;        // part of a quick run
  spec::Origin origin;      // of `text`
};

// Where a figure stands in what a step left.
struct Source {
  std::string step;
  compare::Metric value;
  std::optional<compare::Metric> low;
  std::optional<compare::Metric> high;
  std::optional<compare::Metric> per;  // another value that it is divided by
  std::string per_step;                // whose output has that one; empty: the same step's
  double times = 1;                    // the result, times this
  std::optional<double> over;          // this, divided by the value
  std::string missing;                 // why it may not be there
  std::string note;                    // what is different about it
};

// Measured earlier and elsewhere, and written down with the suite.
struct Recorded {
  double value = 0;
  std::optional<double> low;  // of its interval, where it has one
  std::optional<double> high;
  std::string note;  // what is different about it
  std::string machine;
  std::string date;
  std::string commit;
  std::string command;
};

enum class GoalKind {
  kAtMost,
  kAtLeast,
  kSizeAtMost,  // of the size, whichever its sign
  kWithin,
};
struct Goal {
  GoalKind kind = GoalKind::kAtMost;
  double bound = 0;  // kWithin: percent of the published figure
  std::string text;  // as written: "<= 1"
};

struct Figure {
  std::string what;
  std::optional<double> published;
  std::string published_as;  // where it is no number: "< 5 s"
  std::optional<Source> measured;
  std::optional<Source> planned;
  std::optional<Recorded> recorded;
  std::optional<Goal> goal;
  std::string why;   // nothing was measured, whatever else there is
  std::string note;  // what is different
  // Where on the table's chart it stands, and on which of its lines; without a line it is not on
  // it.
  double x = 0;
  std::string line;
};

// What a line would be if nothing were lost on the way along x.
enum class Ideal {
  kNone,
  kSame,    // as high as at its beginning: shares
  kLinear,  // as many times its beginning as x is: amounts
};

struct FigureChart {
  std::string x;  // what lies along it: "GPUs"
  Ideal ideal = Ideal::kNone;
};

struct FigureTable {
  std::string title;
  std::string unit;
  bool is_signed = false;  // shown with a + where it is more than 0
  std::string note;
  std::optional<FigureChart> chart;
  std::vector<Figure> figures;
};

struct Suite {
  std::string name;
  std::string text;  // the file
  std::string source;
  std::string title;
  std::string reproduces;  // whose experiment, and where it is published
  std::string url;
  std::string note;
  Settings settings;
  Settings quick;  // over them in a quick run
  std::vector<Step> steps;
  std::vector<FigureTable> tables;

  // Null when there is none.
  [[nodiscard]] const Step* step(std::string_view step_name) const;
};

// `source` names the text in errors.
base::Result<Suite> read_suite(const std::string& text, const std::string& source);

// The text of a step with every @{setting} filled in; settings may use others.
base::Result<std::string> filled_in(const Suite& suite, const Step& step, bool quick);

}  // namespace assay::suite
