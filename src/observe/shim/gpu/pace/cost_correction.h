// Correction factor of a lane's estimates. A launch measured between two events takes longer than
// it adds to a full queue, much longer for a kernel of microseconds; and the time of some functions
// depends on more than their grid. So the measured time of whole stretches of work is compared with
// the sum of their estimates, and everything in flight or to be launched is multiplied by the
// ratio.
#pragma once

#include <cstdint>

namespace assay::gpu {

class CostCorrection {
 public:
  // A stretch that was queued when the previous one ended: the device was never idle in between. A
  // single one changes little: it may be mismeasured, and an estimate that is too high leaves the
  // device idle.
  void learn(double took_ns, double estimated_ns) {
    const double expected_ns = times_ * estimated_ns;
    took_ns = within(took_ns, expected_ns / kStep, expected_ns * kStep);
    if (is_new()) ++stretches_;
    took_ = took_ * kKeep + took_ns;
    estimated_ = estimated_ * kKeep + estimated_ns;
    times_ = within(took_ / estimated_, 1 / kMost, kMost);
  }
  // The device may have been idle for part of that time.
  void learn_upper_bound(double took_ns, double estimated_ns) {
    if (took_ns < times_ * estimated_ns) {
      learn(took_ns, estimated_ns);
    } else if (is_new()) {
      ++stretches_;
    }
  }

  // Few measurements so far: not much should be launched by estimates alone.
  [[nodiscard]] bool is_new() const { return stretches_ < kFew; }
  [[nodiscard]] double times() const { return times_; }
  [[nodiscard]] std::uint64_t real(std::uint64_t estimated_ns) const {
    return static_cast<std::uint64_t>(static_cast<double>(estimated_ns) * times_);
  }
  // The estimate that corresponds to this actual time.
  [[nodiscard]] std::uint64_t estimated(std::uint64_t real_ns) const {
    return static_cast<std::uint64_t>(static_cast<double>(real_ns) / times_);
  }

 private:
  // Weight of earlier stretches after each stretch of about a millisecond: adapts within a turn,
  // and still averages several.
  static constexpr double kKeep = 0.8;
  // Prior weight, so that the first stretch does not decide alone.
  static constexpr double kPriorNs = 500'000;
  static constexpr int kFew = 8;
  static constexpr double kStep = 4;
  static constexpr double kMost = 256;

  // Handles NaN, too.
  static double within(double value, double least, double most) {
    if (!(value > least)) return least;
    return value < most ? value : most;
  }

  double took_ = kPriorNs;
  double estimated_ = kPriorNs;
  double times_ = 1;
  int stretches_ = 0;
};

}  // namespace assay::gpu
