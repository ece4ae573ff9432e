#include "comm/reduce.h"

#include <bit>
#include <cstring>

namespace assay::comm {
namespace {

// The type an element is stored in, and the type it is summed in.
template <class T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum widened(Stored value) { return value; }
  static Stored narrowed(Sum value) { return value; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using Sum = float;
  static Sum widened(Stored value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
  }
  // Rounds to nearest, ties to even; NaN stays NaN.
  static Stored narrowed(Sum value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (value != value) return static_cast<Stored>((bits >> 16U) | 0x40U);
    return static_cast<Stored>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
  }
};

template <class Type>
typename Type::Stored element(const std::byte* from, std::int64_t i) {
  typename Type::Stored value;
  std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof value, sizeof value);
  return value;
}

template <class Type, class Combine>
void reduce_as(std::span<const std::byte* const> from, std::byte* out, std::int64_t count,
               Combine combine) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto sum = Type::widened(element<Type>(from[0], i));
    for (const std::byte* other : from.subspan(1)) {
      sum = combine(sum, Type::widened(element<Type>(other, i)));
    }
    const auto stored = Type::narrowed(sum);
    std::memcpy(out + static_cast<std::size_t>(i) * sizeof stored, &stored, sizeof stored);
  }
}

template <class Type>
void reduce_type(std::span<const std::byte* const> from, std::byte* out, std::int64_t count,
                 Reduction reduction) {
  using Sum = typename Type::Sum;
  if (reduction == Reduction::kMax) {
    return reduce_as<Type>(from, out, count, [](Sum a, Sum b) { return a < b ? b : a; });
  }
  reduce_as<Type>(from, out, count, [](Sum a, Sum b) { return static_cast<Sum>(a + b); });
}

}  // namespace

void reduce(std::span<const std::byte* const> from, std::byte* out, std::int64_t count, Dtype type,
            Reduction reduction) {
  switch (type) {
    case Dtype::kU8:
      return reduce_type<Plain<std::uint8_t>>(from, out, count, reduction);
    case Dtype::kI32:
      return reduce_type<Plain<std::int32_t>>(from, out, count, reduction);
    case Dtype::kBf16:
      return reduce_type<Bf16>(from, out, count, reduction);
    case Dtype::kF32:
      return reduce_type<Plain<float>>(from, out, count, reduction);
    case Dtype::kF64:
      return reduce_type<Plain<double>>(from, out, count, reduction);
  }
}

}  // namespace assay::comm
