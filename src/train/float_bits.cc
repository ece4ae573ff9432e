#include "train/float_bits.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

namespace assay::train {

SplitFloats split_floats(std::span<const float> values) {
  SplitFloats result{std::vector<std::uint16_t>(values.size()),
                     std::vector<std::uint16_t>(values.size())};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const SplitMaster pair = split_master(values[i]);
    result.high[i] = pair.high;
    result.low[i] = pair.low;
  }
  return result;
}

float from_fp16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13U;
  if (magnitude >= 0x7c00U << 13U) {  // infinities and NaNs
    return std::bit_cast<float>(sign | 0x7f800000U | magnitude);
  }
  // The product moves the exponent from fp16's bias of 15 to fp32's of 127.
  return std::bit_cast<float>(
      sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F));
}

bool are_weights(checkpoint::TensorDtype type) {
  return type == checkpoint::TensorDtype::kF32 || type == checkpoint::TensorDtype::kBf16 ||
         type == checkpoint::TensorDtype::kF16;
}

base::Result<std::vector<float>> to_floats(std::span<const std::byte> from,
                                           checkpoint::TensorDtype type) {
  if (!are_weights(type)) {
    return base::fail(
        base::usage_error("weights", fmt::format("are stored as {}", checkpoint::dtype_name(type)),
                          "only fp32, bf16 and fp16 can be used"));
  }
  std::vector<float> values(from.size() / static_cast<std::size_t>(checkpoint::dtype_bytes(type)));
  if (type == checkpoint::TensorDtype::kF32) {
    std::memcpy(values.data(), from.data(), from.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * i, 2);
    values[i] = type == checkpoint::TensorDtype::kBf16 ? from_bf16(bits) : from_fp16(bits);
  }
  return values;
}

}  // namespace assay::train
