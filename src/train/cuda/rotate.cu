// Rotary positions: the first and second half of a head are the real and imaginary parts of complex
// numbers, which are rotated by position.
#include <cmath>
#include <vector>

#include "train/cuda/kernels.h"
#include "train/cuda/positions.cuh"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kRotateThreads = 256;

struct RotateArguments {
  Half* heads;
  const float* cosines;
  const float* sines;
  std::int64_t stride;
  unsigned rows;
  RowPositions positions;
  unsigned half;    // of a head
  unsigned chunks;  // of half a head
  unsigned items;   // chunks of a row
  float direction;
};

// Processes kWide numbers of each half at a time: 8, or 4 if half a head is not a multiple of 8.
template <int kWide>
__global__ void __launch_bounds__(kRotateThreads) rotate_kernel(RotateArguments a) {
  using Raw = std::conditional_t<kWide == 8, uint4, uint2>;
  const std::uint64_t item = static_cast<std::uint64_t>(blockIdx.x) * kRotateThreads + threadIdx.x;
  const auto row = static_cast<unsigned>(item / a.items);
  if (row >= a.rows) return;
  const unsigned in_row = static_cast<unsigned>(item - std::uint64_t{row} * a.items);
  const unsigned head = in_row / a.chunks;
  const unsigned at = (in_row - head * a.chunks) * kWide;
  Half* real = a.heads + row * a.stride + head * 2 * a.half + at;
  Half* imaginary = real + a.half;
  const std::size_t turn = static_cast<std::size_t>(a.positions.of(row)) * a.half + at;
  Raw raw_real = *reinterpret_cast<const Raw*>(real);
  Raw raw_imaginary = *reinterpret_cast<const Raw*>(imaginary);
  auto* x_bits = reinterpret_cast<std::uint32_t*>(&raw_real);
  auto* y_bits = reinterpret_cast<std::uint32_t*>(&raw_imaginary);
#pragma unroll
  for (int i = 0; i < kWide / 2; ++i) {
    const float2 cosine = *reinterpret_cast<const float2*>(a.cosines + turn + 2 * i);
    const float2 sine = *reinterpret_cast<const float2*>(a.sines + turn + 2 * i);
    const float x0 = __uint_as_float(x_bits[i] << 16);
    const float x1 = __uint_as_float(x_bits[i] & 0xffff0000U);
    const float y0 = __uint_as_float(y_bits[i] << 16);
    const float y1 = __uint_as_float(y_bits[i] & 0xffff0000U);
    const float s0 = sine.x * a.direction;
    const float s1 = sine.y * a.direction;
    x_bits[i] = narrow_two(x0 * cosine.x - y0 * s0, x1 * cosine.y - y1 * s1);
    y_bits[i] = narrow_two(y0 * cosine.x + x0 * s0, y1 * cosine.y + x1 * s1);
  }
  *reinterpret_cast<Raw*>(real) = raw_real;
  *reinterpret_cast<Raw*>(imaginary) = raw_imaginary;
}

}  // namespace

void make_rotation_table(Device& device, const Rotation& rotation,
                         std::span<const double> frequencies) {
  const std::int64_t half = rotation.head_dim / 2;
  const std::int64_t count = rotation.sequence * half;
  std::vector<float> rotation_table(static_cast<std::size_t>(2 * count));
  for (std::int64_t i = 0; i < half; ++i) {
    for (std::int64_t t = 0; t < rotation.sequence; ++t) {
      const double angle = static_cast<double>(t) * frequencies[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(t * half + i);
      rotation_table[at] = static_cast<float>(std::cos(angle));
      rotation_table[at + static_cast<std::size_t>(count)] = static_cast<float>(std::sin(angle));
    }
  }
  // Synchronous: the host vector goes out of scope.
  device.check(cudaMemcpy(device.workspace.rotation_table, rotation_table.data(),
                          rotation_table.size() * sizeof(float), cudaMemcpyHostToDevice),
               "table of rotations");
}

void rotate(Device& device, const Rotation& rotation, int direction, Matrix heads) {
  device.executed(direction > 0 ? step::OpKind::kRotate : step::OpKind::kRotateGrad, {}, {heads});
  const auto half = static_cast<unsigned>(rotation.head_dim / 2);
  const unsigned wide = half % 8 == 0 ? 8 : 4;
  const float* cosines = device.workspace.rotation_table;
  RotateArguments a{.heads = heads.as<Half>(),
                    .cosines = cosines,
                    .sines = cosines + rotation.sequence * half,
                    .stride = heads.stride,
                    .rows = static_cast<unsigned>(heads.rows),
                    .positions = row_positions(rotation.part),
                    .half = half,
                    .chunks = half / wide,
                    .items = static_cast<unsigned>(heads.cols / 2 / wide),
                    .direction = static_cast<float>(direction)};
  const unsigned blocks =
      blocks_for(heads.rows * static_cast<std::int64_t>(a.items), kRotateThreads);
  if (wide == 8) {
    rotate_kernel<8><<<blocks, kRotateThreads, 0, device.stream>>>(a);
  } else {
    rotate_kernel<4><<<blocks, kRotateThreads, 0, device.stream>>>(a);
  }
  device.launched("rotation");
}

}  // namespace assay::train::cuda
