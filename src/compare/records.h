// What a journal holds: the experiment, its runs, and what else must be known to believe them. Each
// is one line of JSON.
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
  std::int64_t run = 0;    // from 1, in the order in which they ran
  std::int64_t block = 0;  // from 0
  std::size_t arm = 0;     // place in the experiment: the last is the second baseline
  std::string started;     // UTC
  double wall_s = 0;
  double cpu_s = 0;
  double value = 0;  // of the metric
  std::optional<double> quality;
  std::vector<StepValue> steps;
  // With steps whose lines were seen to come, or whose times were recorded:
  std::optional<double> startup_s;  // until the first step began
  std::optional<double> after_s;    // from the last step to the end
};

// A run that said nothing: it failed, was late, or could not be read.
struct FailedRun {
  std::int64_t run = 0;
  std::int64_t block = 0;
  std::size_t arm = 0;
  std::string started;
  std::string what;
};

struct HostMark {
  std::int64_t first_block = 0;
  std::int64_t last_block = 0;
  std::vector<std::string> what;
};

// Where and with what it was run: once at the beginning, and once for every time it went on.
struct Sitting {
  std::string begun;    // UTC
  std::string host;     // its name
  std::string machine;  // "2-core …, 23.5 GiB, no GPU"
  std::string kernel;
  std::string driver;   // of GPUs; may be empty
  std::string assay;    // release and commit
  std::string project;  // commit of the folder that the commands run in; empty: none
  std::vector<std::string> preflight;

  bool operator==(const Sitting&) const = default;
};

// When it ends and how it is judged, which may be changed when it goes on.
struct Rules {
  StopRule stop;
  Judgement judgement;

  bool operator==(const Rules&) const = default;
};
struct RuleChange {
  std::int64_t pairs = 0;  // that had been made by then
  Rules from;
  Rules to;
};

// A time at which somebody was told the estimate and could decide to go on or not.
struct Look {
  std::int64_t run = 0;  // the last one that it is of
  std::int64_t pairs = 0;
  Stop stop = Stop::kNo;
  bool planned = false;  // as the experiment said before anybody looked
  double share = 0;      // of the errors allowed that a verdict may spend; 0: there is none

  bool operator==(const Look&) const = default;
};

struct Measured {
  Experiment experiment;  // with its rules as they are now
  std::vector<ArmRun> runs;
  std::vector<HostMark> marks;
  std::vector<FailedRun> failures = {};
  std::vector<Sitting> sittings = {};
  std::vector<RuleChange> changes = {};
  std::vector<Look> looks = {};

  [[nodiscard]] std::int64_t next_block() const;
  [[nodiscard]] std::int64_t next_run() const;
  [[nodiscard]] std::int64_t last_run() const { return runs.empty() ? 0 : runs.back().run; }
};

base::Json to_json(const ArmRun& run);
base::Json to_json(const FailedRun& run);
base::Json to_json(const HostMark& mark);
base::Json to_json(const Sitting& sitting);
base::Json to_json(const Rules& rules);
base::Json to_json(const RuleChange& change);  // what it was changed to
base::Json to_json(const Look& look);

// Adds a line to what was measured. What no journal of ours has is left out; Json::exception where
// a line lacks something.
base::Result<void> add_line(const base::Json& line, Measured& measured);

}  // namespace assay::compare
