// Products of experts on a GPU, in bf16 and in fp8, against a CPU's: with uneven rows, experts
// without any, on any number of streams, and by our own kernel.
#include <cmath>
#include <random>

#include "base/testing/temp_dir.h"
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

bool is_hopper() {
  cudaDeviceProp card{};
  EXPECT_EQ(cudaGetDeviceProperties(&card, 0), cudaSuccess);
  return card.major == 9 && card.minor == 0;
}

// By the kernel, where there is one, with drawn sides, experts, pieces and rows.
TEST_F(MixtureKernels, ProductsOfExpertsByKernel) {
  cuda::Matmul products;
  ASSERT_TRUE(products.open("").has_value());
  cuda::GroupedProducts grouped(products);
  ASSERT_TRUE(grouped.open().has_value());
  grouped.use_lanes(cuda::kByKernel);
  std::mt19937 random(19);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t count) {
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return floats_of(halves_of(values));
  };
  const auto one_of = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random()) % most;
  };
  constexpr int kCases = 60;
  for (int i = 0; i < kCases; ++i) {
    const std::int64_t experts = one_of(9);
    const std::int64_t pieces = one_of(3);
    const std::int64_t in = 8 * one_of(50);
    const std::int64_t out = 8 * one_of(50);
    Ints routing = {0};
    for (std::int64_t e = 0; e < experts * pieces; ++e) {
      routing.push_back(routing.back() +
                        static_cast<std::int32_t>(random() % 3 == 0 ? 0 : random() % 300));
    }
    const std::int64_t rows = routing.back() + one_of(70);
    const bool transpose_a = i % 3 == 2;
    const bool transpose_b = i % 3 == 0;
    const bool adds = random() % 2 == 0;
    Floats a = drawn(rows * (i % 3 == 0 ? in : out));
    Floats b = drawn(transpose_a ? rows * in : experts * out * in);
    const std::int64_t b_rows = transpose_a ? rows : experts * out;
    const std::int64_t c_rows = transpose_a ? experts * out : rows;
    const std::int64_t c_cols = transpose_b ? out : in;
    Floats expected = drawn(c_rows * c_cols);
    const Halves before = halves_of(expected);
    cpu::grouped_matmul(reference_, {transpose_a, transpose_b, adds}, pieces, on_cpu(a, rows),
                        on_cpu(b, b_rows), on_cpu(routing, 1), on_cpu(expected, c_rows));
    // Rows that nobody has may be anything.
    const auto forget = [&](Floats& values) {
      const auto used = static_cast<std::size_t>(routing.back()) *
                        (values.size() / static_cast<std::size_t>(rows));
      std::fill(values.begin() + static_cast<std::ptrdiff_t>(used), values.end(), NAN);
    };
    forget(a);
    if (transpose_a) forget(b);
    const OnDevice<std::uint16_t> gpu_a(halves_of(a));
    const OnDevice<std::uint16_t> gpu_b(halves_of(b));
    const OnDevice<std::int32_t> first_rows(routing);
    Halves first;
    for (int turn = 0; turn < 2; ++turn) {
      const OnDevice<std::uint16_t> c(before);
      const cuda::GroupedProduct product{.transpose_a = transpose_a,
                                         .transpose_b = transpose_b,
                                         .adds = adds,
                                         .a = gpu_a.matrix(rows),
                                         .b = gpu_b.matrix(b_rows),
                                         .c = c.matrix(c_rows),
                                         .experts = experts,
                                         .pieces = pieces,
                                         .first_rows = first_rows.matrix(1).as<std::int32_t>()};
      EXPECT_EQ(grouped.needs_rows_on_host(product), !is_hopper());
      grouped.multiply(device_, product, routing);
      const Halves found = c.get();
      EXPECT_LT(apart(floats_of(found), expected), 4e-3)
          << i << ": " << experts << " experts, " << pieces << " pieces, " << in << " x " << out;
      if (turn == 0) first = found;
      EXPECT_TRUE(found == first);
    }
  }
}

// Whether the kernel was faster: in the file, and in what a checkpoint has.
TEST_F(MixtureKernels, TheFasterWayIsRemembered) {
  constexpr std::int64_t kExperts = 4;
  constexpr std::int64_t kRows = 1024;
  constexpr std::int64_t kSide = 512;
  const OnDevice<std::uint16_t> a(Halves(kRows * kSide));
  const OnDevice<std::uint16_t> b(Halves(kExperts * kSide * kSide));
  const OnDevice<std::uint16_t> c(Halves(kRows * kSide));
  const OnDevice<std::int32_t> first_rows(Ints{0, 256, 512, 768, 1024});
  const cuda::GroupedProduct product{.transpose_b = true,
                                     .a = a.matrix(kRows),
                                     .b = b.matrix(kExperts * kSide),
                                     .c = c.matrix(kRows),
                                     .experts = kExperts,
                                     .first_rows = first_rows.matrix(1).as<std::int32_t>()};
  const base::testing::TempDir folder;
  const std::string file = folder.path() / "tuning";
  cuda::Matmul products;
  ASSERT_TRUE(products.open(file).has_value());
  cuda::GroupedProducts grouped(products);
  ASSERT_TRUE(grouped.open().has_value());
  EXPECT_TRUE(grouped.needs_rows_on_host(product));  // nobody has said otherwise
  grouped.tune(device_, product);
  EXPECT_EQ(products.timed(), is_hopper() ? 2 : 1);
  ASSERT_TRUE(products.save().has_value());
  for (const bool from_file : {true, false}) {
    cuda::Matmul others;
    ASSERT_TRUE(others.open(from_file ? file : "").has_value());
    EXPECT_TRUE(from_file || others.adopt(products.algorithms()));
    cuda::GroupedProducts again(others);
    ASSERT_TRUE(again.open().has_value());
    again.tune(device_, product);
    EXPECT_EQ(others.timed(), 0);
    EXPECT_EQ(again.needs_rows_on_host(product), grouped.needs_rows_on_host(product));
  }
}

TEST_F(MixtureKernels, ProductsOfExperts) {
  constexpr std::int64_t kExperts = 6;
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kIn = 96;
  constexpr std::int64_t kOut = 136;  // rows are aligned to 16 bytes, not more
  cuda::Matmul products;
  ASSERT_TRUE(products.open("").has_value());
  cuda::GroupedProducts grouped(products);
  ASSERT_TRUE(grouped.open().has_value());
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
        grouped.multiply(refused, product, routing);
        EXPECT_EQ(refused.failure(), "the rows of experts are not in order");
        continue;
      }
      // Rows that nobody has keep what is there.
      Floats expected(size, 3);
      cpu::grouped_matmul(reference_, {form.transpose_a, form.transpose_b, false}, 1,
                          on_cpu(form.cpu_a, kRows), on_cpu(form.cpu_b, form.b_rows),
                          on_cpu(routing, 1), on_cpu(expected, form.c_rows));
      const OnDevice<std::int32_t> first_rows(routing);
      product.first_rows = first_rows.matrix(1).as<std::int32_t>();
      Halves first;
      for (const int lanes : {1, 2, 4, 1, cuda::kByKernel}) {
        const OnDevice<std::uint16_t> made(halves_of(Floats(size, 3)));
        product.c = made.matrix(form.c_rows);
        grouped.use_lanes(lanes);
        grouped.multiply(device_, product, routing);
        const Halves found = made.get();
        EXPECT_LT(apart(floats_of(found), expected), 4e-3);
        if (first.empty()) first = found;
        EXPECT_TRUE(found == first || lanes == cuda::kByKernel) << lanes << " lanes";
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
  cuda::GroupedProducts grouped(products);
  ASSERT_TRUE(grouped.open().has_value());
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
      grouped.multiply(device_,
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
