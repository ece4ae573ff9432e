// AdamW on the device against the same arithmetic on the host, bit for bit: weights as fp32 joined
// from their halves, moments rounded with the same random bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "train/cuda/testing/trial.h"
#include "train/testing/join_master.h"

namespace assay::train::cuda {
namespace {

using testing::scalar;
using testing::Trial;

std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x85ebca6bU;
  x = (x ^ (x >> 13U)) * 0xc2b2ae35U;
  return x ^ (x >> 16U);
}

std::uint16_t rounded(float value, std::uint32_t bits) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + bits) >> 16U);
}

// What one op updates, in host memory.
struct HostRange {
  const step::Op* op = nullptr;
  std::vector<float> weight;
  std::vector<std::uint16_t> first;
  std::vector<std::uint16_t> second;

  [[nodiscard]] bool decays() const { return op->part == step::ModelPart::kDecayed; }
};

void update(HostRange& group, const std::vector<std::uint16_t>& gradient, float clip,
            const StepSettings& s) {
  const auto steps = static_cast<double>(s.step);
  const auto beta1 = static_cast<float>(s.beta1);
  const auto beta2 = static_cast<float>(s.beta2);
  const auto rate = static_cast<float>(s.learning_rate);
  const auto correct1 = static_cast<float>(1.0 / (1.0 - std::pow(s.beta1, steps)));
  const auto correct2 = static_cast<float>(1.0 / (1.0 - std::pow(s.beta2, steps)));
  const auto epsilon = static_cast<float>(s.epsilon);
  const float keep =
      group.decays() ? static_cast<float>(1.0 - s.learning_rate * s.weight_decay) : 1.0F;
  const std::uint32_t seed = mixed(static_cast<std::uint32_t>(s.step) * 0x9e3779b9U);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float g = join_master({gradient[i], 0}) * clip;
    const float m = beta1 * join_master({group.first[i], 0}) + (1 - beta1) * g;
    const float v = beta2 * join_master({group.second[i], 0}) + (1 - beta2) * g * g;
    group.weight[i] =
        keep * group.weight[i] - rate * (m * correct1) / (std::sqrt(v * correct2) + epsilon);
    const std::uint32_t bits =
        mixed(seed ^ static_cast<std::uint32_t>(group.op->element + static_cast<std::int64_t>(i)));
    group.first[i] = rounded(m, bits & 0xffffU);
    group.second[i] = rounded(v, bits >> 16U);
  }
}

TEST(CudaAdamw, IsTheHostsToTheLastBit) {
  auto backend = testing::gpu_backend();
  if (backend == nullptr) GTEST_SKIP() << "there is no GPU";
  Trial trial(std::move(backend), testing::variants()[0].model,
              {.numerics = step::numerics_of(spec::Precision::kBf16),
               .recompute = spec::Recompute::kCheap});
  const step::Program& p = trial.program();
  const auto weights_of = [&](const step::Op& op) {
    const auto high = trial.bits(op.out[0]);
    const auto low = trial.bits(op.out[1]);
    std::vector<float> joined;
    for (std::size_t i = 0; i < high.size(); ++i) joined.push_back(join_master({high[i], low[i]}));
    return joined;
  };
  std::vector<HostRange> host;
  for (const step::Op& op : p.ops) {
    if (op.kind != step::OpKind::kAdamw) continue;
    const auto elements = static_cast<std::size_t>(op.out[0].elements());
    host.push_back({.op = &op,
                    .weight = weights_of(op),
                    .first = std::vector<std::uint16_t>(elements),
                    .second = std::vector<std::uint16_t>(elements)});
  }
  for (std::int64_t step = 1; step <= 4; ++step) {
    const StepSettings settings{.step = step,
                                .learning_rate = 3e-4 * static_cast<double>(step),
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .epsilon = 1e-8,
                                .weight_decay = 0.1,
                                .clip = 0.5};
    const Scalars scalars = trial.step(settings);
    ASSERT_LT(scalar(scalars, step::Scalar::kClip), 1.0F);
    for (HostRange& range : host) {
      update(range, trial.bits(range.op->in[0]), scalar(scalars, step::Scalar::kClip), settings);
      EXPECT_TRUE(range.first == trial.bits(range.op->out[2])) << step;
      EXPECT_TRUE(range.second == trial.bits(range.op->out[3])) << step;
      EXPECT_TRUE(range.weight == weights_of(*range.op)) << step;
    }
  }
}

}  // namespace
}  // namespace assay::train::cuda
