#include "train/checkpoint/tensor.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace assay::checkpoint {
namespace {

struct DtypeRow {
  TensorDtype dtype;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kDtypes = {
    DtypeRow{TensorDtype::kF32, "F32", 4},        DtypeRow{TensorDtype::kBf16, "BF16", 2},
    DtypeRow{TensorDtype::kF16, "F16", 2},        DtypeRow{TensorDtype::kU16, "U16", 2},
    DtypeRow{TensorDtype::kI32, "I32", 4},        DtypeRow{TensorDtype::kI64, "I64", 8},
    DtypeRow{TensorDtype::kF8E4m3, "F8_E4M3", 1}, DtypeRow{TensorDtype::kU8, "U8", 1},
};

const DtypeRow& row_of(TensorDtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

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

std::int64_t dtype_bytes(TensorDtype dtype) {
  return row_of(dtype).bytes;
}

std::string_view dtype_name(TensorDtype dtype) {
  return row_of(dtype).name;
}

std::optional<TensorDtype> dtype_named(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string all_dtype_names() {
  std::string names;
  for (const DtypeRow& row : kDtypes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::optional<std::int64_t> TensorInfo::bytes() const {
  std::int64_t product = dtype_bytes(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

TensorInfo entry_of(const TensorInfo& whole, const ElementRange& elements) {
  if (elements.first == 0 && elements.count == whole.elements()) return whole;
  const std::string runs =
      elements.in_runs() ? fmt::format(",{}/{}", elements.run, elements.apart) : "";
  return {fmt::format("{}[{}:{}{}]", whole.name, elements.first, elements.end(), runs),
          whole.dtype,
          {elements.count}};
}

bool is_piece_of(const TensorInfo& whole, const ElementRange& e) {
  if (!whole.bytes()) return false;
  const std::int64_t elements = whole.elements();
  if (e.first < 0 || e.count <= 0 || e.first > elements || e.count > elements - e.first) {
    return false;
  }
  if (!e.in_runs()) return e.run == 0;
  return whole.shape.size() == 2 && e.apart == whole.shape[1] && e.run < e.apart &&
         e.count % e.run == 0 && e.first % e.apart + e.run <= e.apart &&
         e.count / e.run <= whole.shape[0] - e.first / e.apart;
}

Tensor owned_tensor(TensorInfo info, std::vector<std::byte> data) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return {std::move(info), *owner, owner};
}

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
