#include "train/float_bits.h"

#include <cmath>
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

base::Result<std::vector<std::byte>> converted(std::span<const std::byte> from,
                                               checkpoint::TensorDtype type, step::Dtype to) {
  if (type == checkpoint::TensorDtype::kBf16 && to == step::Dtype::kF32) {
    std::vector<std::byte> out(from.size() * 2);
    for (std::size_t i = 0; i < from.size() / 2; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from.data() + 2 * i, 2);
      const float value = from_bf16(bits);
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
    return out;
  }
  return base::fail(
      base::usage_error("weights", "cannot be converted: they are neither bf16 nor fp32"));
}

}  // namespace assay::train
