// FakeClock: a clock that stands still until a test moves it. Safe to read from several threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace assay::base {

class FakeClock final : public Clock {
 public:
  FakeClock() = default;
  explicit FakeClock(std::int64_t wall_ns) : wall_ns_(wall_ns) {}

  [[nodiscard]] std::int64_t monotonic_ns() const override { return monotonic_ns_; }
  [[nodiscard]] std::int64_t wall_ns() const override { return wall_ns_; }

  // Moves both, as time does.
  void advance_ns(std::int64_t ns) {
    monotonic_ns_ += ns;
    wall_ns_ += ns;
  }
  void advance_ms(std::int64_t ms) { advance_ns(ms * 1'000'000); }
  // Moves only the wall clock, as an administrator does.
  void set_wall_ns(std::int64_t ns) { wall_ns_ = ns; }

 private:
  std::atomic<std::int64_t> monotonic_ns_ = 0;
  std::atomic<std::int64_t> wall_ns_ = 0;
};

}  // namespace assay::base
