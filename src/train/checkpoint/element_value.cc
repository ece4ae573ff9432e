#include "train/checkpoint/element_value.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace assay::checkpoint {
namespace {

template <class T>
T as(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// A float of few bits: sign, exponent, mantissa.
double small_float(unsigned bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const unsigned exponent = bits >> mantissa_bits & ((1U << exponent_bits) - 1);
  const bool negative = (bits >> (mantissa_bits + exponent_bits) & 1U) != 0;
  const unsigned top = (1U << exponent_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == top && has_infinity) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == top && mantissa == (1U << mantissa_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();  // E4M3 has only this one
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << mantissa_bits),
                       static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return negative ? -value : value;
}

}  // namespace

double element_value(TensorDtype dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case TensorDtype::kF32:
      return static_cast<double>(as<float>(bytes));
    case TensorDtype::kBf16:
      return static_cast<double>(
          std::bit_cast<float>(std::uint32_t{as<std::uint16_t>(bytes)} << 16U));
    case TensorDtype::kF16:
      return small_float(as<std::uint16_t>(bytes), 5, 10, true);
    case TensorDtype::kF8E4m3:
      return small_float(as<std::uint8_t>(bytes), 4, 3, false);
    case TensorDtype::kU16:
      return as<std::uint16_t>(bytes);
    case TensorDtype::kI32:
      return as<std::int32_t>(bytes);
    case TensorDtype::kI64:
      return static_cast<double>(as<std::int64_t>(bytes));
    case TensorDtype::kU8:
      return as<std::uint8_t>(bytes);
  }
  return 0;
}

double element_difference(TensorDtype dtype, std::span<const std::byte> a,
                          std::span<const std::byte> b) {
  if (dtype == TensorDtype::kI64) {
    const auto left = static_cast<long double>(as<std::int64_t>(a));
    return static_cast<double>(std::fabs(left - static_cast<long double>(as<std::int64_t>(b))));
  }
  return std::fabs(element_value(dtype, a) - element_value(dtype, b));
}

}  // namespace assay::checkpoint
