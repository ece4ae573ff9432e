// Costs of launches: nanoseconds of device time, by function and grid, from the last measurements.
// One table per process. Two kinds of launch that share an entry get a value between the two: costs
// only bound what is in flight; runs are charged by the clock. CostCorrection adapts them to what
// whole stretches of work take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

inline constexpr std::uint32_t kCosts = 4096;
// More than any budget, so that work that was never timed goes to the pacing point.
inline constexpr std::uint32_t kUnknownCost = 1U << 30U;

// As computed by the assembly (paced.cc): the upper 12 bits of a product.
inline constexpr std::uint32_t kCostFactors[] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F};
inline std::uint32_t cost_place(const void* function, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(function));
  return ((x * kCostFactors[0] + y * kCostFactors[1] + z * kCostFactors[2] + low) *
          kCostFactors[3]) >>
         20U;
}

// Copies and memsets: by kind and size, after the launches in the same table.
enum class CopyKind : std::uint8_t {
  kToDevice,
  kToHost,
  kOnDevice,
  kUnified,  // the direction follows from the addresses
  kToPeer,
  kArray,
  kSet,
  kKinds
};
inline constexpr std::uint32_t kSizeClasses = 256;  // four for each power of two
inline constexpr std::uint32_t kCopyCosts =
    kSizeClasses * static_cast<std::uint32_t>(CopyKind::kKinds);
inline std::uint32_t size_class(std::uint64_t bytes) {
  if (bytes < 4) return static_cast<std::uint32_t>(bytes);
  const auto exponent = static_cast<std::uint32_t>(63 - __builtin_clzll(bytes));
  return exponent * 4 + static_cast<std::uint32_t>(bytes >> (exponent - 2) & 3);
}
inline std::uint32_t copy_place(CopyKind kind, std::uint64_t bytes) {
  return kCosts + static_cast<std::uint32_t>(kind) * kSizeClasses + size_class(bytes);
}
// Assumed cost of a copy until one of its size was timed: longer than on any current GPU, because
// it bounds what is in flight.
std::uint64_t assumed_copy_ns(CopyKind kind, std::uint64_t bytes);

void forget_costs();
std::uint32_t cost_of(std::uint32_t place);
// The first measurements lower the cost at once and raise it in steps, because a first launch is
// slow for reasons that do not recur. Later ones change it slowly, because one grid may alternate
// between long and short times.
void learn_cost(std::uint32_t place, double ns);
// It was timed often enough that one more measurement changes little.
bool is_settled(std::uint32_t place);

// Correction factor of a lane's estimates. A launch measured between two events takes longer than
// it adds to a full queue, much longer for a kernel of microseconds; and the time of some functions
// depends on more than their grid. So the measured time of whole stretches of work is compared with
// the sum of their estimates, and everything in flight or to be launched is multiplied by the
// ratio.
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
  // The device may have been idle for part of that time. As long as the bound does not contradict
  // the costs themselves, which are measured again and again, a factor that makes them less is
  // slowly given up: if work never queues up, nothing else would ever raise it.
  void learn_upper_bound(double took_ns, double estimated_ns) {
    const double expected_ns = times_ * estimated_ns;
    if (took_ns < expected_ns) {
      learn(took_ns, estimated_ns);
    } else if (times_ < 1) {
      const double least_ns = took_ns < estimated_ns ? took_ns : estimated_ns;
      learn(expected_ns + (least_ns - expected_ns) * kGivenUp, estimated_ns);
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
  // Part of the difference. Small, because work also starts on an idle device at the beginning of
  // each turn, and for short work the costs are too high.
  static constexpr double kGivenUp = 1.0 / 16;
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

extern "C" {
extern ASSAY_HIDDEN std::atomic<std::uint32_t>
    assay_gpu_costs[assay::gpu::kCosts + assay::gpu::kCopyCosts];
}
