// Rotary positions: the first and second half of a head are the real and imaginary parts of complex
// numbers, which are rotated by position, as in the published Llama weights.
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kRotateRows = 64;

}  // namespace

void rotate(Device& device, const Rotation& rotation, int direction, Matrix heads) {
  device.executed(direction > 0 ? step::Kind::kRotate : step::Kind::kRotateGrad, {}, {heads});
  const auto half = static_cast<std::int64_t>(rotation.frequencies.size());
  const std::int64_t count = heads.cols / (2 * half);
  device.ranges(heads.rows, kRotateRows, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> turn(static_cast<std::size_t>(2 * half));
    for (std::int64_t t = first; t < last; ++t) {
      const auto position = static_cast<double>(rotation.part.position(t));
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = position * rotation.frequencies[static_cast<std::size_t>(i)];
        turn[static_cast<std::size_t>(i)] = static_cast<float>(std::cos(angle));
        turn[static_cast<std::size_t>(half + i)] =
            static_cast<float>(std::sin(angle)) * static_cast<float>(direction);
      }
      for (std::int64_t head = 0; head < count; ++head) {
        float* real = heads.row(t) + head * 2 * half;
        float* imaginary = real + half;
        for (std::int64_t i = 0; i < half; ++i) {
          const float cosine = turn[static_cast<std::size_t>(i)];
          const float sine = turn[static_cast<std::size_t>(half + i)];
          const float x = real[i];
          const float y = imaginary[i];
          real[i] = x * cosine - y * sine;
          imaginary[i] = y * cosine + x * sine;
        }
      }
    }
  });
}

}  // namespace assay::train::cpu
