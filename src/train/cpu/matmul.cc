// Matrix products. OpenBLAS computes with one thread; the rows of the result are divided among
// threads in blocks of a fixed size.
#include <cblas.h>

#include <algorithm>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kProductRows = 128;
constexpr std::int64_t kBiasColumns = 64;

// Initialises the result before the product is added.
void copy_residual_and_bias(Matrix residual, Matrix bias, Matrix c, std::int64_t first,
                            std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) {
    float* to = c.row(i);
    if (!residual.empty()) {
      std::copy_n(residual.row(i), c.cols, to);
      for (std::int64_t j = 0; !bias.empty() && j < c.cols; ++j) to[j] += bias.data[j];
    } else {
      std::copy_n(bias.data, c.cols, to);
    }
  }
}

}  // namespace

void matmul(Device& device, Product product, Matrix a, Matrix b, Matrix residual, Matrix bias,
            Matrix c) {
  device.executed(step::OpKind::kMatmul, {a, b, residual, bias}, {c});
  multiply_rows(device, product, a, b, residual, bias, c);
}

void multiply_rows(Device& device, Product product, Matrix a, Matrix b, Matrix residual,
                   Matrix bias, Matrix c) {
  const std::int64_t inner = product.transpose_a ? a.rows : a.cols;
  const bool laid = !residual.empty() || !bias.empty();
  const float beta = product.adds || laid ? 1.0F : 0.0F;
  device.ranges(c.rows, kProductRows, [&](std::int64_t first, std::int64_t last) {
    if (laid) copy_residual_and_bias(residual, bias, c, first, last);
    const float* part = product.transpose_a ? a.data + first : a.row(first);
    cblas_sgemm(CblasRowMajor, product.transpose_a ? CblasTrans : CblasNoTrans,
                product.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(last - first),
                static_cast<int>(c.cols), static_cast<int>(inner), 1.0F, part,
                static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), beta, c.row(first),
                static_cast<int>(c.stride));
  });
}

void bias_grad(Device& device, Matrix dy, Matrix dbias, bool adds) {
  device.executed(step::OpKind::kBiasGrad, {dy}, {dbias});
  device.ranges(dy.cols, kBiasColumns, [&](std::int64_t first, std::int64_t last) {
    if (!adds) std::fill(dbias.data + first, dbias.data + last, 0.0F);
    for (std::int64_t t = 0; t < dy.rows; ++t) {
      const float* from = dy.row(t);
      for (std::int64_t i = first; i < last; ++i) dbias.data[i] += from[i];
    }
  });
}

}  // namespace assay::train::cpu
