// The text of a progress line; progress.h decides when it is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace assay::base {

enum class ProgressUnit { kItems, kBytes };

struct ProgressFacts {
  std::string_view label;
  std::int64_t done = 0;
  std::optional<std::int64_t> total;  // nothing when unknown
  ProgressUnit unit = ProgressUnit::kItems;
  double per_second = 0;  // 0 when not known yet
  Seconds elapsed;
};

// "hashing  1.20 GiB / 4.00 GiB   30%  512 MB/s  ETA 0:05", or as much of it as fits into
// `columns`.
std::string progress_line(const ProgressFacts& facts, std::size_t columns);

// The rate over the last few seconds. Samples are weighted by the time they cover, so that a single
// slow or fast moment does not disturb the ETA, but a lasting change shows within seconds.
class SmoothedRate {
 public:
  // `amount` was done in the `seconds` since the previous sample.
  void sample(double amount, double seconds);
  [[nodiscard]] double per_second() const;

 private:
  double weighted_ = 0;  // decayed amount per second
  double weight_ = 0;    // decayed time; dividing by it removes the start-up bias
};

}  // namespace assay::base
