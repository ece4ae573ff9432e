// Products of experts on a GPU, in bf16 and in fp8, against a CPU's: with uneven rows, experts
// without any, and on any number of streams.
#include <cmath>
#include <random>

#include "train/mixture_kernels.h"

namespace assay::train::mixture_test {
namespace {

// Relative to the size of all of it.
double apart(const Floats& found, const Floats& expected) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto x = static_cast<double>(expected[i]);
    difference += std::pow(static_cast<double>(found[i]) - x, 2);
    size += x * x;
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

TEST_F(MixtureKernels, ProductsOfExperts) {
  constexpr std::int64_t kExperts = 6;
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kIn = 96;
  constexpr std::int64_t kOut = 136;  // rows are aligned to 16 bytes, not more
  cuda::Matmul products;
  ASSERT_TRUE(products.open("").has_value());
  cuda::LoopedProducts looped(products);
  ASSERT_TRUE(looped.open().has_value());
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t count) {
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return floats_of(halves_of(values));
  };
  Floats x = drawn(kRows * kIn);
  Floats y = drawn(kRows * kOut);
  Floats weights = drawn(kExperts * kOut * kIn);
  const OnDevice<std::uint16_t> gpu_x(halves_of(x));
  const OnDevice<std::uint16_t> gpu_y(halves_of(y));
  const OnDevice<std::uint16_t> gpu_weights(halves_of(weights));
  const std::vector<Ints> routings = {
      {0, 117, 234, 351, 468, 584, 700}, {0, 0, 0, 700, 700, 700, 700}, {0, 1, 2, 3, 4, 5, 6},
      {0, 0, 33, 33, 500, 501, 501},     {0, 0, 0, 0, 0, 0, 0},         {700, 0, 0, 0, 0, 0, 0},
  };
  struct Form {
    bool transpose_a, transpose_b;
    const OnDevice<std::uint16_t>&a, &b;
    Floats &cpu_a, &cpu_b;
    std::int64_t b_rows, c_rows, c_cols;
  };
  const Form forms[] = {
      {false, true, gpu_x, gpu_weights, x, weights, kExperts * kOut, kRows, kOut},
      {false, false, gpu_y, gpu_weights, y, weights, kExperts * kOut, kRows, kIn},
      {true, false, gpu_y, gpu_x, y, x, kRows, kExperts * kOut, kIn},
  };
  for (const Form& form : forms) {
    const auto size = static_cast<std::size_t>(form.c_rows * form.c_cols);
    const OnDevice<std::uint16_t> c(size);
    cuda::GroupedProduct product{.transpose_a = form.transpose_a,
                                 .transpose_b = form.transpose_b,
                                 .a = form.a.matrix(kRows),
                                 .b = form.b.matrix(form.b_rows),
                                 .c = c.matrix(form.c_rows),
                                 .experts = kExperts};
    for (Ints routing : routings) {
      if (routing.front() != 0) {
        cuda::Device refused;
        looped.multiply(refused, product, routing);
        EXPECT_EQ(refused.failure(), "the rows of experts are not in order");
        continue;
      }
      // Rows that nobody has keep what is there.
      Floats expected(size, 3);
      cpu::grouped_matmul(reference_, {form.transpose_a, form.transpose_b, false}, 1,
                          on_cpu(form.cpu_a, kRows), on_cpu(form.cpu_b, form.b_rows),
                          on_cpu(routing, 1), on_cpu(expected, form.c_rows));
      Halves first;
      for (const int lanes : {1, 2, 4, 1}) {
        const OnDevice<std::uint16_t> made(halves_of(Floats(size, 3)));
        product.c = made.matrix(form.c_rows);
        looped.use_lanes(lanes);
        looped.multiply(device_, product, routing);
        const Halves found = made.get();
        EXPECT_LT(apart(floats_of(found), expected), 4e-3);
        if (first.empty()) first = found;
        EXPECT_TRUE(found == first) << lanes << " lanes";
      }
    }
  }
}

// Small whole numbers, which fp8 has: results are those in bf16.
TEST_F(MixtureKernels, ProductsOfExpertsInFp8) {
  constexpr std::int64_t kExperts = 6;
  constexpr std::int64_t kPieces = 2;
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kIn = 96;
  constexpr std::int64_t kOut = 144;
  constexpr std::int64_t kPadded = (kRows + kExperts * 15) / 16 * 16;
  cuda::Matmul products;
  ASSERT_TRUE(products.open("").has_value());
  cuda::LoopedProducts looped(products);
  ASSERT_TRUE(looped.open().has_value());
  std::mt19937 random(17);
  const auto drawn = [&](std::int64_t count) {
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(random() % 17) - 8;
    values[0] = 8;  // the scale
    return values;
  };
  Floats x = drawn(kRows * kIn);
  Floats y = drawn(kRows * kOut);
  Floats weights = drawn(kExperts * kOut * kIn);
  const OnDevice<std::uint16_t> gpu_x(halves_of(x));
  const OnDevice<std::uint16_t> gpu_y(halves_of(y));
  const OnDevice<std::uint16_t> gpu_weights(halves_of(weights));
  const OnDevice<float> scale(Floats{8});
  const cuda::Matrix by = scale.matrix(1);
  const std::vector<Ints> routings = {
      {0, 50, 117, 200, 234, 300, 351, 400, 468, 468, 584, 650, 700},
      {0, 0, 0, 0, 0, 333, 700, 700, 700, 700, 700, 700, 700},
      {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6},
      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  for (Ints routing : routings) {
    const OnDevice<std::int32_t> first_rows(routing);
    const cuda::RowsOfExperts rows{first_rows.matrix(1), kPieces};
    const OnDevice<std::uint8_t> x_q(kRows * kIn);
    const OnDevice<std::uint8_t> x_t(kIn * kPadded);
    const OnDevice<std::uint8_t> y_q(kRows * kOut);
    const OnDevice<std::uint8_t> y_t(kOut * kPadded);
    const OnDevice<std::uint8_t> w_q(kExperts * kOut * kIn);
    const OnDevice<std::uint8_t> w_t(kExperts * kOut * kIn);
    cuda::quantise(device_, gpu_x.matrix(kRows), by, rows, x_q.matrix(kRows), x_t.matrix(kIn));
    cuda::quantise(device_, gpu_y.matrix(kRows), by, rows, y_q.matrix(kRows), y_t.matrix(kOut));
    cuda::quantise(device_, gpu_weights.matrix(kExperts * kOut), by, {},
                   w_q.matrix(kExperts * kOut), w_t.matrix(kIn));
    struct Form {
      bool transpose_a, transpose_b;
      cuda::Matrix a, b;
      Floats &cpu_a, &cpu_b;
      std::int64_t b_rows, c_rows, c_cols;
    };
    const Form forms[] = {
        {false, true, x_q.matrix(kRows), w_q.matrix(kExperts * kOut), x, weights, kExperts * kOut,
         kRows, kOut},
        {false, false, y_q.matrix(kRows), w_t.matrix(kIn), y, weights, kExperts * kOut, kRows, kIn},
        {true, false, y_t.matrix(kOut), x_t.matrix(kIn), y, x, kRows, kExperts * kOut, kIn}};
    for (const Form& form : forms) {
      const auto size = static_cast<std::size_t>(form.c_rows * form.c_cols);
      Floats expected(size, 3);
      cpu::grouped_matmul(reference_, {form.transpose_a, form.transpose_b, false}, kPieces,
                          on_cpu(form.cpu_a, kRows), on_cpu(form.cpu_b, form.b_rows),
                          on_cpu(routing, 1), on_cpu(expected, form.c_rows));
      const OnDevice<std::uint16_t> made(halves_of(Floats(size, 3)));
      looped.multiply(device_,
                      {.transpose_a = form.transpose_a,
                       .transpose_b = form.transpose_b,
                       .a = form.a,
                       .b = form.b,
                       .c = made.matrix(form.c_rows),
                       .scale_a = by,
                       .scale_b = by,
                       .experts = kExperts,
                       .pieces = kPieces},
                      routing);
      EXPECT_LT(apart(floats_of(made.get()), expected), 4e-3)
          << form.transpose_a << form.transpose_b << " " << routing[1];
    }
  }
}

}  // namespace
}  // namespace assay::train::mixture_test
