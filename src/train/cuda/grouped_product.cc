#include "train/cuda/grouped_product.h"

#include <algorithm>
#include <bit>

#include "step/rules.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kRoundPlanned = 128;  // the tallest tile of any algorithm
constexpr std::int64_t kHalf = 2;            // bytes of an element
constexpr std::int64_t kFp8 = 1;

Matrix rows_from(const Matrix& m, std::int64_t first, std::int64_t count, std::int64_t bytes) {
  return {m.as<std::byte>() + first * m.stride * bytes, count, m.cols, m.stride};
}

// For fp8.
Matrix columns_from(const Matrix& m, std::int64_t first, std::int64_t count) {
  return {m.as<std::byte>() + first, m.rows, count, m.stride};
}

// The alignment in bytes of every row of a matrix, wherever it begins.
std::int64_t alignment_of_rows(const Matrix& m, std::int64_t bytes) {
  constexpr std::uint64_t kMost = 256;
  return std::int64_t{1} << std::countr_zero(static_cast<std::uint64_t>(m.stride * bytes) | kMost);
}

}  // namespace

Product GroupedProduct::of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const {
  const auto share = [&](const Matrix& m, std::int64_t bytes) {
    const std::int64_t each = m.rows / experts;
    return rows_from(m, expert * each, each, bytes);
  };
  Product p{.transpose_a = transpose_a, .transpose_b = transpose_b};
  p.c = transpose_a ? share(c, kHalf) : rows_from(c, first, count, kHalf);
  if (fp8()) {
    p.transpose_a = false;
    p.transpose_b = true;
    p.alpha = 1 / (kFp8Range * kFp8Range);
    p.scale_a = scale_a;
    p.scale_b = scale_b;
    p.alignment = step::kFp8Alignment;  // of columns, and hence of all operands
    p.a = transpose_a ? columns_from(a, first, count) : rows_from(a, first, count, kFp8);
    p.b = transpose_a   ? columns_from(b, first, count)
          : transpose_b ? share(b, kFp8)
                        : columns_from(b, expert * (b.cols / experts), b.cols / experts);
  } else {
    p.a = rows_from(a, first, count, kHalf);
    p.b = transpose_a ? rows_from(b, first, count, kHalf) : share(b, kHalf);
    p.alignment = std::min(alignment_of_rows(a, kHalf), alignment_of_rows(b, kHalf));
  }
  p.alignment = std::min(p.alignment, alignment_of_rows(c, kHalf));
  if (adds) {
    p.addend = p.c;
    p.beta = 1;
  }
  return p;
}

Product GroupedProduct::planned() const {
  const std::int64_t even = (rows_to_expect() + products() - 1) / products();
  const std::int64_t rounded = (even + kRoundPlanned - 1) / kRoundPlanned * kRoundPlanned;
  Product product = of_expert(0, 0, std::min(rows(), rounded));
  product.in_group = true;
  return product;
}

}  // namespace assay::train::cuda
