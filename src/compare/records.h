// The records of a journal, each one line of JSON: the experiment, its runs, and the circumstances
// needed to trust them (sessions, host problems, interim analyses, rule changes, failures).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "compare/experiment.h"

namespace assay::compare {

struct ArmRun {
  std::int64_t run = 0;    // from 1, in the order of execution
  std::int64_t block = 0;  // from 0
  std::size_t arm = 0;     // index in the experiment: the last is the second baseline
  std::string started;     // UTC
  double wall_s = 0;
  double cpu_s = 0;
  double value = 0;  // of the metric
  std::optional<double> quality;
  std::vector<StepValue> steps;
  // If the end of steps is known, from the arrival of their output or from the store:
  std::optional<double> startup_s;  // until the first step began
  std::optional<double> after_s;    // from the last step to the end
};

// A run without a value: it failed, timed out, or its output had no number.
struct FailedRun {
  std::int64_t run = 0;
  std::int64_t block = 0;
  std::size_t arm = 0;
  std::string started;
  std::string what;
};

// "run 3, arm B"
std::string where_failed(const Experiment& experiment, std::int64_t run, std::size_t arm);
// "run 3, arm B: exited with 1; its output is in …"
std::string failure_text(const Experiment& experiment, const FailedRun& failure);

// Something else used the machine while these blocks ran.
struct HostMark {
  std::int64_t first_block = 0;
  std::int64_t last_block = 0;
  std::vector<std::string> what;
};

// Where and with what software it was run: one record when it begins and one each time it is
// resumed.
struct SessionRecord {
  std::string begun;    // UTC
  std::string host;     // its name
  std::string machine;  // "2-core …, 23.5 GiB, no GPU"
  std::string kernel;
  std::string driver;   // of GPUs; may be empty
  std::string assay;    // release and commit
  std::string project;  // commit of the working directory; empty: none
  std::vector<std::string> preflight;

  bool operator==(const SessionRecord&) const = default;
};

// When it stops and how it is judged; may be changed when it is resumed.
struct Rules {
  StopRule stop;
  Judgement judgement;

  bool operator==(const Rules&) const = default;
};
struct RuleChange {
  std::int64_t pairs = 0;  // made before the change
  Rules from;
  Rules to;
};

// A time at which the estimate was shown, so that a person could decide whether to continue.
struct InterimAnalysis {
  std::int64_t run = 0;  // the last run included
  std::int64_t pairs = 0;
  StopReason stop = StopReason::kNo;
  bool planned = false;    // at the end that was defined before any result was seen
  double alpha_share = 0;  // share of alpha that its verdict may spend; 0: no verdict

  bool operator==(const InterimAnalysis&) const = default;
};

struct Measured {
  Experiment experiment;  // with the rules now in force
  std::vector<ArmRun> runs;
  std::vector<HostMark> marks;
  std::vector<FailedRun> failures = {};
  std::vector<SessionRecord> sessions = {};
  std::vector<RuleChange> changes = {};
  std::vector<InterimAnalysis> analyses = {};

  [[nodiscard]] std::int64_t next_block() const;
  [[nodiscard]] std::int64_t next_run() const;
  [[nodiscard]] std::int64_t last_run() const { return runs.empty() ? 0 : runs.back().run; }
  // The failure that ended it, if nothing ran after that; nullptr otherwise.
  [[nodiscard]] const FailedRun* last_failure() const;
  // Whether the arm that failed last has ever succeeded, so that resuming may succeed.
  [[nodiscard]] bool may_succeed_when_resumed() const;
};

base::Json to_json(const ArmRun& run);
base::Json to_json(const FailedRun& run);
base::Json to_json(const HostMark& mark);
base::Json to_json(const SessionRecord& session);
base::Json to_json(const Rules& rules);
base::Json to_json(const RuleChange& change);  // the new rules
base::Json to_json(const InterimAnalysis& analysis);

// Adds a line to `measured`. Ignores unknown kinds of lines, which later releases may write; throws
// Json::exception if a line lacks a key.
base::Result<void> add_line(const base::Json& line, Measured& measured);

}  // namespace assay::compare
