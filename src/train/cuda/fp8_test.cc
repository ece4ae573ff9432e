// Products in fp8: the conversion against a search of all 256 codes, and a step against the same
// step in bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "train/cuda/kernels.h"
#include "train/cuda/testing/trial.h"
#include "train/float_bits.h"
#include "train/testing/executed_as_listed.h"
#include "train/testing/tensor_similarity.h"

namespace assay::train::cuda {
namespace {

using testing::gpu_backend;
using testing::scalar;
using testing::Trial;
using testing::Variant;

// Decodes a code by the definition of the format; NaN for invalid codes.
double value_of(int code) {
  constexpr int kMantissa = 3;
  constexpr int kBias = 7;
  const int exponent = (code & 0x7f) >> kMantissa;
  const int fraction = code & ((1 << kMantissa) - 1);
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const double size = std::ldexp(1.0, -kMantissa);
  const double magnitude = exponent == 0 ? std::ldexp(fraction * size, 1 - kBias)
                                         : std::ldexp(1 + fraction * size, exponent - kBias);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// The nearest code; ties to even.
std::uint8_t nearest(double value) {
  int best = -1;
  for (int code = 0; code < 256; ++code) {
    if (std::signbit(value) != ((code & 0x80) != 0)) continue;
    const double at = value_of(code);
    if (std::isnan(at)) continue;
    const double away = std::abs(at - value);
    const double before = best < 0 ? INFINITY : std::abs(value_of(best) - value);
    if (away < before || (away == before && code % 2 == 0)) best = code;
  }
  return static_cast<std::uint8_t>(best);
}

class CudaFp8 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }
};

// Device memory for a test.
template <class T>
class Memory {
 public:
  explicit Memory(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), cudaSuccess);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  void put(const std::vector<T>& from) {
    EXPECT_EQ(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  std::vector<T> get() const {
    std::vector<T> to(count_);
    EXPECT_EQ(cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return to;
  }
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

std::uint16_t half_of(float value) {
  return split_master(value).high;
}

std::vector<std::uint16_t> some_halves(std::size_t count, float size) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> halves(count);
  for (std::size_t i = 0; i < count; ++i) {
    // From large values to fp8 subnormals and zero.
    const float small = std::exp2(-static_cast<float>(random() % 24));
    halves[i] = half_of(size * normal(random) * small);
  }
  return halves;
}

TEST_F(CudaFp8, IsTheNearestCodeAsItLiesAndTransposed) {
  for (const auto& [rows, cols] : {std::pair{128, 128}, {8, 264}, {200, 16}, {136, 392}}) {
    const auto count = static_cast<std::size_t>(rows * cols);
    const std::vector<std::uint16_t> x = some_halves(count, 37.0F);
    Memory<std::uint16_t> device_x(count);
    Memory<float> device_scale(1);
    Memory<std::uint8_t> device_q(count);
    Memory<std::uint8_t> device_t(count);
    Memory<double> sums(kSums);
    device_x.put(x);
    Device device;
    device.workspace.sums = sums.data();
    const Matrix matrix{device_x.data(), rows, cols, cols};
    const Matrix scale_matrix{device_scale.data(), 1, 1, 1};
    scale(device, matrix, {}, scale_matrix);
    quantise(device, matrix, scale_matrix, {}, {device_q.data(), rows, cols, cols},
             {device_t.data(), cols, rows, rows});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(device.failure(), "");

    float most = 0;
    for (const std::uint16_t half : x) most = std::max(most, std::abs(from_bf16(half)));
    const float power = device_scale.get()[0];
    EXPECT_EQ(power, std::exp2(std::ceil(std::log2(most))));
    const auto q = device_q.get();
    const auto t = device_t.get();
    for (std::size_t i = 0; i < count; ++i) {
      const auto scaled = static_cast<double>(from_bf16(x[i]) / power * kFp8Range);
      ASSERT_EQ(q[i], nearest(scaled)) << i << ": " << scaled;
      const std::size_t row = i / static_cast<std::size_t>(cols);
      const std::size_t col = i % static_cast<std::size_t>(cols);
      ASSERT_EQ(t[col * static_cast<std::size_t>(rows) + row], q[i]);
    }
  }
}

// Rows of experts: unused rows are ignored, and in the transpose each expert's columns begin at a
// multiple of 16, with zeros before.
TEST_F(CudaFp8, RowsOfExpertsArePaddedWhereTheyAreTransposed) {
  constexpr int kRows = 333;
  constexpr int kCols = 144;
  const auto count = static_cast<std::size_t>(kRows) * kCols;
  for (const int pieces : {1, 2}) {
    const std::vector<std::vector<std::int32_t>> loads = {
        {0, 0, 1, 18, 18, 18, 34, 50, 300, 300, 331},
        {0, 333, 333, 333, 333, 333, 333, 333, 333, 333, 333},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
        {0, 33, 66, 99, 132, 165, 198, 231, 264, 297, 330}};
    for (const std::vector<std::int32_t>& first_rows : loads) {
      std::vector<std::uint16_t> x = some_halves(count, 37.0F);
      const auto used = static_cast<std::size_t>(first_rows.back()) * kCols;
      std::fill(x.begin() + static_cast<std::ptrdiff_t>(used), x.end(), std::uint16_t{0x7fc0});
      const int experts = static_cast<int>(first_rows.size() - 1) / pieces;
      const int padded = (kRows + experts * 15) / 16 * 16;
      Memory<std::uint16_t> device_x(count);
      Memory<std::int32_t> device_rows(first_rows.size());
      Memory<float> device_scale(1);
      Memory<std::uint8_t> device_q(count);
      Memory<std::uint8_t> device_t(static_cast<std::size_t>(padded) * kCols);
      Memory<double> sums(kSums);
      device_x.put(x);
      device_rows.put(first_rows);
      device_t.put(std::vector<std::uint8_t>(static_cast<std::size_t>(padded) * kCols, 0x55));
      Device device;
      device.workspace.sums = sums.data();
      const auto of_rows = static_cast<std::int64_t>(first_rows.size());
      const Matrix rows{device_rows.data(), 1, of_rows, of_rows};
      const Matrix matrix{device_x.data(), kRows, kCols, kCols};
      const Matrix scale_matrix{device_scale.data(), 1, 1, 1};
      scale(device, matrix, rows, scale_matrix);
      quantise(device, matrix, scale_matrix, {rows, pieces}, {device_q.data(), kRows, kCols, kCols},
               {device_t.data(), kCols, padded, padded});
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(device.failure(), "");

      float most = 0;
      for (std::size_t i = 0; i < used; ++i) most = std::max(most, std::abs(from_bf16(x[i])));
      const float power = device_scale.get()[0];
      EXPECT_EQ(power, std::exp2(std::ceil(std::log2(most))));
      const auto q = device_q.get();
      const auto t = device_t.get();
      int column = 0;
      for (int e = 0; e < experts; ++e) {
        const int first = first_rows[static_cast<std::size_t>(e * pieces)];
        const int end = first_rows[static_cast<std::size_t>((e + 1) * pieces)];
        const int own = (end - first + 15) / 16 * 16;
        for (int i = 0; i < own; ++i, ++column) {
          for (int c = 0; c < kCols; ++c) {
            const auto at = static_cast<std::size_t>(c) * static_cast<std::size_t>(padded) +
                            static_cast<std::size_t>(column);
            const auto from =
                static_cast<std::size_t>(first + i) * kCols + static_cast<std::size_t>(c);
            const bool there = first + i < end;
            ASSERT_EQ(t[at], there ? q[from] : 0) << e << " " << i << " " << c;
            if (there) {
              ASSERT_EQ(q[from],
                        nearest(static_cast<double>(from_bf16(x[from]) / power * kFp8Range)));
            }
          }
        }
      }
    }
  }
}

TEST_F(CudaFp8, ScalesOfStrangeMatrices) {
  const auto scale_of = [](std::vector<std::uint16_t> halves) {
    Memory<std::uint16_t> x(halves.size());
    Memory<float> out(1);
    Memory<double> sums(kSums);
    x.put(halves);
    Device device;
    device.workspace.sums = sums.data();
    const auto count = static_cast<std::int64_t>(halves.size());
    scale(device, {x.data(), 1, count, count}, {}, {out.data(), 1, 1, 1});
    return out.get()[0];
  };
  EXPECT_EQ(scale_of(std::vector<std::uint16_t>(64, 0)), 1.0F);
  EXPECT_EQ(scale_of(std::vector<std::uint16_t>(64, 0x8000)), 1.0F);
  EXPECT_EQ(scale_of(std::vector<std::uint16_t>(64, half_of(-4.0F))), 4.0F);
  EXPECT_EQ(scale_of(std::vector<std::uint16_t>(64, 0x0001)), std::exp2(-100.0F));
  EXPECT_EQ(scale_of(std::vector<std::uint16_t>(64, 0x7f80)),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(scale_of(std::vector<std::uint16_t>(64, 0xffff))));
}

step::Choices choices_in(spec::Precision precision, spec::Recompute recompute) {
  return {.numerics = step::numerics_of(precision),
          .recompute = recompute,
          .accumulate = 2,
          .head_rows = 128};
}

// Three bits of mantissa round by 2.6 % on average (root mean square), so every product of two such
// matrices has 3.7 % of noise. A gradient of these models depends on up to twenty-four products,
// whose noise adds up to sqrt(24) times as much: a cosine of 0.984, and less where gradients of
// both signs cancel.
TEST_F(CudaFp8, AStepIsCloseToTheOneInBf16) {
  constexpr double kCosine = 0.97;
  std::vector<Variant> variants = testing::variants();
  // Every token has every expert, so that noise does not change the choice.
  spec::ModelSpec mixture = variants[0].model;
  mixture.experts = mixture.experts_per_token = 3;
  variants.push_back({"mixture", mixture});
  for (const Variant& variant : variants) {
    Trial exact(gpu_backend(), variant.model,
                choices_in(spec::Precision::kBf16, spec::Recompute::kCheap));
    Trial rough(gpu_backend(), variant.model,
                choices_in(spec::Precision::kFp8, spec::Recompute::kCheap));
    const StepSettings settings{.counted_targets = 1};
    const float loss = scalar(exact.step(settings), step::Scalar::kLossSum);
    EXPECT_NEAR(scalar(rough.step(settings), step::Scalar::kLossSum) / loss, 1.0F, 2e-3F)
        << variant.name;
    for (std::size_t i = 0; i < exact.program().parameters.size(); ++i) {
      const step::Parameter& p = exact.program().parameters[i];
      EXPECT_GT(train::testing::tensor_similarity(exact.gradient(p),
                                                  rough.gradient(rough.program().parameters[i]))
                    .cosine,
                kCosine)
          << variant.name << " " << p.name;
    }
  }
}

TEST_F(CudaFp8, ExecutesTheListAndRecomputationChangesNothing) {
  for (const Variant& variant : testing::with_mixtures()) {
    std::map<std::string, std::vector<float>> first;
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      Trial run(gpu_backend(), variant.model, choices_in(spec::Precision::kFp8, policy));
      ExecutedLog log;
      run.backend().log_to(&log);
      run.step({.counted_targets = 1});
      train::testing::expect_executed_as_listed(log, run.program());
      for (const step::Parameter& p : run.program().parameters) {
        const std::vector<float> gradient = run.gradient(p);
        const auto [at, is_new] = first.try_emplace(p.name, gradient);
        EXPECT_TRUE(at->second == gradient) << variant.name << " " << p.name;
      }
    }
  }
}

TEST_F(CudaFp8, WhatIsNotFiniteIsNoticed) {
  Trial trial(gpu_backend(), testing::variants()[0].model,
              choices_in(spec::Precision::kFp8, spec::Recompute::kCheap));
  const auto qkv =
      std::ranges::find(trial.program().parameters, "layers.0.qkv", &step::Parameter::name);
  const step::View weights = trial.whole(trial.program().unit_of(*qkv).weights);
  for (const std::uint16_t bad : {std::uint16_t{0x7f80}, std::uint16_t{0x7fc0}}) {
    std::vector<std::uint16_t> bits = trial.bits(weights);
    bits[static_cast<std::size_t>(qkv->offset)] = bad;
    trial.set_bits(weights, bits);
    EXPECT_EQ(scalar(trial.step({.counted_targets = 1}), step::Scalar::kNonFinite), 1.0F);
  }
}

}  // namespace
}  // namespace assay::train::cuda
