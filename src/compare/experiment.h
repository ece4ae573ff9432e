// Experiment: what to compare, how to measure it and when to stop. Made from the command line, from
// an experiment file, or from the first line of a journal, which holds it as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "compare/effect.h"
#include "compare/metric.h"

namespace assay::compare {

// The error rate of all comparisons of an experiment together.
inline constexpr double kTotalAlpha = 0.05;

struct Arm {
  std::string name;
  std::string command;
  std::vector<std::string> environment = {};  // "KEY=value", added to the inherited environment
  std::string prepare = {};                   // executed before each of its runs, not timed
  std::string cleanup = {};                   // executed after each of its runs
  std::vector<std::string> values = {};       // of the scanned parameters, in their order
  std::string scanned_command = {};           // in a scan: `command` with its {N} placeholders
};

struct StopRule {
  double half_width_pct = 0.25;
  std::int64_t min_pairs = 20;  // with fewer pairs even a narrow interval does not stop it
  std::int64_t max_pairs = 100'000;
  base::Seconds max_time = base::Seconds(600);

  bool operator==(const StopRule&) const = default;
};

enum class StopReason { kNo, kNarrow, kTime, kPairs, kFailed };
std::string_view to_text(StopReason stop);  // "the interval is narrow enough"
// The inverse; kNo for unknown text.
StopReason stop_reason_from_text(std::string_view text);

struct Experiment {
  std::vector<Arm> arms;  // the first is the baseline
  bool second_baseline = true;
  std::vector<std::string> scanned = {};  // parameters, if the arms are the values of a scan
  ComparedMetric metric;
  std::optional<ComparedMetric> steps;
  double step_seconds = 1;  // the unit of a step's time
  std::optional<ComparedMetric> quality;
  StopRule stop;
  Judgement judgement;
  std::optional<std::int64_t> warm_up;  // blocks; nothing: detected automatically
  std::optional<base::Seconds> timeout;
  std::uint64_t seed = 1;
  std::string directory;  // the working directory of the commands

  // Runs per block: every arm, and the baseline once more at the end.
  [[nodiscard]] std::size_t runs_per_block() const {
    return arms.size() + (second_baseline ? 1 : 0);
  }
  [[nodiscard]] const Arm& arm_of(std::size_t index) const {
    return arms[index < arms.size() ? index : 0];
  }
  // "A", "B", …, "A'" for the second baseline.
  [[nodiscard]] std::string name_of(std::size_t index) const;
  // The error level of each comparison with the baseline, such that all of them hold together with
  // 95 % confidence (Bonferroni).
  [[nodiscard]] double alpha() const;
  // Whether the compared value is a time.
  [[nodiscard]] bool is_time() const;
};

// Rejects what cannot be compared: one arm, names that are not distinct, numbers out of range.
base::Result<void> check(const Experiment& experiment);

// exp(difference) as text: "9.2 × faster" for times and throughputs, "1.50 × as much" for other
// metrics.
std::string ratio_text(const Experiment& experiment, double difference);

base::Json to_json(const Experiment& experiment);
base::Result<Experiment> experiment_from_json(const base::Json& json);

}  // namespace assay::compare
