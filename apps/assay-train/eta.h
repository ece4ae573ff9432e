// When a run will be done, from how long its steps and validations take. Time comes from outside.
#pragma once

#include <cstdint>

namespace assay::cli {

class Eta {
 public:
  // Steps `first` to `last`, a validation after every `validate_every`-th (0: none).
  Eta(std::int64_t first, std::int64_t last, std::int64_t validate_every)
      : first_(first), last_(last), validate_every_(validate_every) {}

  // `seconds`: from the end of the step before, or its own for the first; saving counts, validation
  // does not.
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

}  // namespace assay::cli
