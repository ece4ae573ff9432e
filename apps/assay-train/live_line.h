// The one line that a terminal shows: what start-up is doing, then each step: all fields if they
// fit, otherwise without the least important ones. Also the ETA it shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "assay-train/step_metrics.h"
#include "cli/verb.h"
#include "train/start_up.h"

namespace assay::cli {

// The estimated time left, from the durations of steps and validations. Reads no clock.
class Eta {
 public:
  // For steps `first` to `last` with a validation after every `validate_every`-th (0: none).
  Eta(std::int64_t first, std::int64_t last, std::int64_t validate_every)
      : first_(first), last_(last), validate_every_(validate_every) {}

  // `seconds`: since the end of the previous step, including saving, without validation; for the
  // first step its own duration.
  void stepped(std::int64_t step, double seconds);
  void validated(double seconds) { validation_seconds_ = seconds; }
  [[nodiscard]] double seconds_left() const;

 private:
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t validate_every_;
  std::int64_t step_ = 0;
  double step_seconds_ = 0;  // smoothed
  double validation_seconds_ = 0;
};

// Which steps get a row where no line is redrawn: the first, the last, about twenty over the run,
// and one when none has been printed for half a minute. Reads no clock.
class Rows {
 public:
  Rows(std::int64_t first, std::int64_t last, std::int64_t steps);
  // `now_s`: on any clock that does not jump.
  bool due(std::int64_t step, double now_s);

 private:
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t every_;
  double printed_s_ = 0;
};

// `eta_seconds`: omitted in the rows of a log. `columns`: nothing means unlimited.
std::string live_line(const MeasuredStep& step, std::optional<double> validation_loss,
                      std::optional<double> eta_seconds, std::optional<std::size_t> columns);

// Counts from the start of this process, and shows the progress of start-up until there are steps
// to show.
train::StartUp begin_start(const Session& session);

// Call before anything else is printed.
void clear_start_line();

}  // namespace assay::cli
