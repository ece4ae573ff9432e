#include "train/finite_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace assay::train {
namespace {

// An IEEE number is infinite or not a number if all bits of its exponent are set. Without a branch
// per element, so that this takes a fraction of the time that hashing the same bytes does.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent) {
  bool finite = true;
  for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits = 0;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

bool is_finite(const checkpoint::Tensor& tensor) {
  switch (tensor.info.dtype) {
    case checkpoint::TensorDtype::kF32:
      return all_finite<std::uint32_t>(tensor.data, 0x7F800000U);
    case checkpoint::TensorDtype::kBf16:
      return all_finite<std::uint16_t>(tensor.data, 0x7F80U);
    case checkpoint::TensorDtype::kF16:
      return all_finite<std::uint16_t>(tensor.data, 0x7C00U);
    default:
      return true;
  }
}

}  // namespace

base::Result<void> check_finite(std::span<const checkpoint::SnapshotPart> parts) {
  for (const checkpoint::SnapshotPart& part : parts) {
    const auto bad = std::ranges::find_if_not(part.tensors, is_finite);
    if (bad == part.tensors.end()) continue;
    return base::fail(base::failed_error(
        part.name, fmt::format("{} is not finite: training has diverged", bad->info.name),
        "continue from an earlier checkpoint, with a lower train.learning_rate"));
  }
  return {};
}

}  // namespace assay::train
