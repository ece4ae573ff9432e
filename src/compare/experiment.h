// Experiment: what is asked. Made from the command line, an experiment file, or the first line of a
// journal, which is its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "compare/effect.h"
#include "compare/metric.h"
#include "compare/stopping.h"

namespace assay::compare {

struct Arm {
  std::string name;
  std::string command;
  std::vector<std::string> environment = {};  // "KEY=value", over ours
  std::string prepare = {};                   // before each of its runs, not timed
  std::string cleanup = {};                   // after
};

struct Experiment {
  std::vector<Arm> arms;  // the first is what the others are compared with
  bool second_baseline = true;
  Metric metric;
  std::optional<Metric> steps;
  double step_seconds = 1;  // one unit of a step's time
  std::optional<Metric> quality;
  StopRule stop;
  Judgement judgement;
  std::optional<std::int64_t> warm_up;  // blocks; nothing: as many as look like it
  std::optional<base::Seconds> timeout;
  std::uint64_t seed = 1;
  std::string directory;  // where the commands run

  // Runs of a block: the arms, and the baseline again as the last one.
  [[nodiscard]] std::size_t runs_per_block() const {
    return arms.size() + (second_baseline ? 1 : 0);
  }
  [[nodiscard]] const Arm& arm_of(std::size_t place) const {
    return arms[place < arms.size() ? place : 0];
  }
  // "A", "B", …, "A'" for the second baseline.
  [[nodiscard]] std::string name_of(std::size_t place) const;
  // Of each comparison with the baseline, so that all of them together are right 95 times of 100.
  [[nodiscard]] double alpha() const;
};

// What cannot be compared: one arm, names that are not distinct, numbers out of range.
base::Result<void> check(const Experiment& experiment);

base::Json to_json(const Experiment& experiment);
base::Result<Experiment> experiment_from_json(const base::Json& json);

}  // namespace assay::compare
