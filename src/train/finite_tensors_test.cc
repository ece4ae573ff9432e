#include "train/finite_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay::train {
namespace {

using checkpoint::SnapshotPart;
using checkpoint::TensorDtype;

template <class Element>
SnapshotPart part(TensorDtype dtype, const std::vector<Element>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  SnapshotPart made{.name = "weights"};
  made.tensors.push_back(checkpoint::owned_tensor({"fine", TensorDtype::kF32, {0}}, {}));
  made.tensors.push_back(
      checkpoint::owned_tensor({"head", dtype, {static_cast<std::int64_t>(elements.size())}},
                               std::vector<std::byte>(bytes.begin(), bytes.end())));
  return made;
}

template <class Element>
bool finite(TensorDtype dtype, const std::vector<Element>& elements) {
  const SnapshotPart made = part(dtype, elements);
  return check_finite(std::span(&made, 1)).has_value();
}

TEST(FiniteTensors, FindsWhatIsNoNumberInEveryTypeAndPlace) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), -std::nanf("1")}) {
    for (std::size_t at = 0; at < 67; ++at) {
      std::vector<float> values(67, -kMost);
      EXPECT_TRUE(finite(TensorDtype::kF32, values));
      values[at] = bad;
      EXPECT_FALSE(finite(TensorDtype::kF32, values)) << at;
    }
  }
  using Halves = std::vector<std::uint16_t>;
  EXPECT_TRUE(finite(TensorDtype::kBf16, Halves{0, 0x7F7F, 0xFF7F, 0x0001}));
  EXPECT_FALSE(finite(TensorDtype::kBf16, Halves{0, 0x7F80}));
  EXPECT_FALSE(finite(TensorDtype::kBf16, Halves{0xFFC0, 0}));
  EXPECT_TRUE(finite(TensorDtype::kF16, Halves{0x7BFF, 0xFBFF}));
  EXPECT_FALSE(finite(TensorDtype::kF16, Halves{0x7C00}));
  EXPECT_TRUE(finite(TensorDtype::kU16, Halves{0x7F80, 0xFFFF}));
  const SnapshotPart made = part<float>(TensorDtype::kF32, {NAN});
  EXPECT_EQ(check_finite(std::span(&made, 1)).error().line(),
            "weights: head is not finite: training has diverged; continue from an earlier "
            "checkpoint, with a lower train.learning_rate");
}

}  // namespace
}  // namespace assay::train
