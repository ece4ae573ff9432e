// Rows of a mixture: gathered in expert order, and summed again for each token; and the bias that
// balances the load.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kMixtureThreads = 256;

// Each thread copies one vector of a row.
__global__ void __launch_bounds__(kMixtureThreads)
    gather_rows_kernel(const Half* x, std::int64_t x_stride, const std::int32_t* slots,
                       unsigned per_token, Half* rows, std::int64_t rows_stride, unsigned vectors,
                       std::uint64_t all) {
  const std::uint64_t item = static_cast<std::uint64_t>(blockIdx.x) * kMixtureThreads + threadIdx.x;
  if (item >= all) return;
  const auto row = static_cast<std::int64_t>(item / vectors);
  const std::int64_t at = static_cast<std::int64_t>(item % vectors) * 8;
  const std::int32_t slot = slots[row];
  const uint4 value = slot < 0
                          ? uint4{0, 0, 0, 0}
                          : load8(x + (static_cast<unsigned>(slot) / per_token) * x_stride + at);
  store8(rows + row * rows_stride + at, value);
}

// Each thread sums one vector of a token: its rows in the order of its slots, rounded once.
__global__ void __launch_bounds__(kMixtureThreads)
    combine_rows_kernel(const Half* x, std::int64_t x_stride, const std::int32_t* rows,
                        int per_token, const Half* residual, std::int64_t residual_stride,
                        Half* sums, std::int64_t sums_stride, unsigned vectors, std::uint64_t all) {
  const std::uint64_t item = static_cast<std::uint64_t>(blockIdx.x) * kMixtureThreads + threadIdx.x;
  if (item >= all) return;
  const auto token = static_cast<std::int64_t>(item / vectors);
  const std::int64_t at = static_cast<std::int64_t>(item % vectors) * 8;
  float sum[8] = {};
  if (residual != nullptr) widen(load8(residual + token * residual_stride + at), sum);
  const std::int32_t* own = rows + token * per_token;
  for (int first = 0; first < per_token; first += 4) {
    // Four loads in flight.
    uint4 raw[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int32_t row = first + j < per_token ? own[first + j] : -1;
      raw[j] = row < 0 ? uint4{0, 0, 0, 0} : load8(x + row * x_stride + at);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float value[8];
      widen(raw[j], value);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] += value[i];
    }
  }
  store8(sums + token * sums_stride + at, narrow(sum));
}

__global__ void __launch_bounds__(kMixtureThreads)
    balance_kernel(const float* scalars, const Half* load, Half* bias, Half* remainder, int count,
                   float by) {
  const int i = static_cast<int>(blockIdx.x) * kMixtureThreads + static_cast<int>(threadIdx.x);
  if (i >= count || scalars[kNonFiniteIndex] != 0) return;
  const float above = widen(load[i]);
  const float move = above > 0 ? by : above < 0 ? -by : 0.0F;
  split_halves(__fsub_rn(join_halves(bias[i], remainder[i]), move), bias[i], remainder[i]);
}

}  // namespace

void gather_rows(Device& device, std::int64_t per_token, Matrix x, Matrix slots, Matrix rows) {
  device.executed(step::OpKind::kGatherRows, {x, slots}, {rows});
  const auto vectors = static_cast<unsigned>(rows.cols / 8);
  const std::int64_t all = rows.rows * vectors;
  gather_rows_kernel<<<blocks_for(all, kMixtureThreads), kMixtureThreads, 0, device.stream>>>(
      x.as<Half>(), x.stride, slots.as<std::int32_t>(), static_cast<unsigned>(per_token),
      rows.as<Half>(), rows.stride, vectors, static_cast<std::uint64_t>(all));
  device.launched("rows of experts");
}

void combine_rows(Device& device, Matrix x, Matrix rows, Matrix residual, Matrix sums) {
  device.executed(step::OpKind::kCombineRows, {x, rows, residual}, {sums});
  const auto vectors = static_cast<unsigned>(sums.cols / 8);
  const std::int64_t all = sums.rows * vectors;
  combine_rows_kernel<<<blocks_for(all, kMixtureThreads), kMixtureThreads, 0, device.stream>>>(
      x.as<Half>(), x.stride, rows.as<std::int32_t>(), static_cast<int>(rows.cols),
      residual.as<Half>(), residual.stride, sums.as<Half>(), sums.stride, vectors,
      static_cast<std::uint64_t>(all));
  device.launched("sum of experts");
}

void balance(Device& device, double rate, Matrix scalars, Matrix load, Matrix bias,
             Matrix remainder) {
  device.executed(step::OpKind::kBalance, {load, scalars}, {bias, remainder});
  const int count = static_cast<int>(bias.cols);
  balance_kernel<<<blocks_for(count, kMixtureThreads), kMixtureThreads, 0, device.stream>>>(
      scalars.as<float>(), load.as<Half>(), bias.as<Half>(), remainder.as<Half>(), count,
      static_cast<float>(rate));
  device.launched("balance of experts");
}

}  // namespace assay::train::cuda
