// By what a lane's estimates are off. What one launch takes between two events is more than what it
// adds to a full queue, much more for a kernel of microseconds; and functions whose time
// depends on more than their grid are timed now here, now there. So what events say of whole
// stretches of work is compared with the sum of the estimates for the same, and everything that is
// in flight, or may be launched, is multiplied by that.
#pragma once

#include <cstdint>

namespace assay::gpu {

class Scale {
 public:
  // A stretch that was waiting when the one before it ended: the device was never idle in between.
  // One alone never changes much: it may have been measured wrongly, and an
  // estimate that is too high leaves the device idle.
  void learn(double took_ns, double estimated_ns) {
    const double expected_ns = times_ * estimated_ns;
    took_ns = within(took_ns, expected_ns / kStep, expected_ns * kStep);
    if (is_new()) ++stretches_;
    took_ = took_ * kKeep + took_ns;
    estimated_ = estimated_ * kKeep + estimated_ns;
    times_ = within(took_ / estimated_, 1 / kMost, kMost);
  }
  // The device may have been idle for a part of that time.
  void learn_most(double took_ns, double estimated_ns) {
    if (took_ns < times_ * estimated_ns) {
      learn(took_ns, estimated_ns);
    } else if (is_new()) {
      ++stretches_;
    }
  }

  // Little was seen until now: better not to launch much by estimates alone.
  [[nodiscard]] bool is_new() const { return stretches_ < kFew; }
  [[nodiscard]] double times() const { return times_; }
  [[nodiscard]] std::uint64_t real(std::uint64_t estimated_ns) const {
    return static_cast<std::uint64_t>(static_cast<double>(estimated_ns) * times_);
  }
  // What is estimated for that much.
  [[nodiscard]] std::uint64_t estimated(std::uint64_t real_ns) const {
    return static_cast<std::uint64_t>(static_cast<double>(real_ns) / times_);
  }

 private:
  // Of what is known, after each stretch of about a millisecond: new within a turn, and still the
  // mean of several.
  static constexpr double kKeep = 0.8;
  // As if that much had been seen before: the first stretch does not decide alone.
  static constexpr double kBelievedNs = 500'000;
  static constexpr int kFew = 8;
  static constexpr double kStep = 4;
  static constexpr double kMost = 256;

  // Also of what is not a number.
  static double within(double value, double least, double most) {
    if (!(value > least)) return least;
    return value < most ? value : most;
  }

  double took_ = kBelievedNs;
  double estimated_ = kBelievedNs;
  double times_ = 1;
  int stretches_ = 0;
};

}  // namespace assay::gpu
