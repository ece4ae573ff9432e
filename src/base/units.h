// Strong units: a byte count cannot be added to a duration, and dividing work by a rate gives time.
//
// Text forms follow common usage: memory in powers of 1024 (KiB, MiB, GiB), bandwidth and
// compute in powers of 1000 (GB/s, TFLOP/s).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::base {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}
  [[nodiscard]] constexpr Rep count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) {
    return Quantity(a.count_ * factor);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) {
    return Quantity(a.count_ / divisor);
  }
  // How many times b fits in a.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.count_) / static_cast<double>(b.count_);
  }

 private:
  Rep count_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;
using Flops = Quantity<struct FlopsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using Watts = Quantity<struct WattsTag, double>;

constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return Seconds(static_cast<double>(size.count()) / rate.count());
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.count() / rate.count());
}
constexpr BytesPerSecond operator/(Bytes size, Seconds time) {
  return BytesPerSecond(static_cast<double>(size.count()) / time.count());
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return FlopsPerSecond(work.count() / time.count());
}

// "80GiB", "80 GB", "4096" (plain bytes). Fractions are allowed if the result is a whole number of
// bytes. Errors are usage errors with an empty `where`: only the caller knows the text's location.
Result<Bytes> parse_bytes(std::string_view text);
// "450GB/s", "400Gb/s" (bits), "400Gbps".
Result<BytesPerSecond> parse_bytes_per_second(std::string_view text);
// "989 TFLOP/s", "989 TFLOPS".
Result<FlopsPerSecond> parse_flops_per_second(std::string_view text);
// "1.5h", "90 s", "250ms", "2 min", "3 d".
Result<Seconds> parse_seconds(std::string_view text);
// "700 W", "1.2 kW".
Result<Watts> parse_watts(std::string_view text);

// For people: three significant digits and a fitting unit ("141 GiB", "4.80 TB/s", "2.90 h").
std::string to_text(Bytes value);
std::string to_text(Seconds value);
std::string to_text(Flops value);
std::string to_text(BytesPerSecond value);
std::string to_text(FlopsPerSecond value);
std::string to_text(Watts value);

// "8,030,261,248"
std::string grouped(std::int64_t value);
// A number with its noun: "1 run", "2 runs", "1,234 runs"; `plural` if it is not noun + "s".
std::string counted(std::int64_t count, std::string_view noun, std::string_view plural = {});
// "8.03B", "124M", "910": counts of parameters and tokens, abbreviated.
std::string short_count(std::int64_t value);

}  // namespace assay::base
