#include "train/cuda/muon.h"

#include <algorithm>
#include <utility>

#include "train/cuda/workspace.h"
#include "train/step_settings.h"

namespace assay::train::cuda {
namespace {

using muon_iteration::kCubic;
using muon_iteration::kIterations;
using muon_iteration::kLinear;
using muon_iteration::kQuintic;

}  // namespace

void muon(Device& device, Matmul& products, const step::Program& program,
          const MuonNumbers& numbers, std::uint32_t rounding_seed, Matrix scalars, Matrix gradient,
          Matrix weight, Matrix remainder, Matrix momentum) {
  device.executed(step::OpKind::kMuon, {gradient, scalars}, {weight, remainder, momentum});
  const std::int64_t rows = gradient.rows;
  const std::int64_t cols = gradient.cols;
  const std::int64_t side = std::min(rows, cols);
  const bool tall = rows > cols;
  auto* memory = static_cast<std::uint16_t*>(device.workspace.orthogonal);
  const std::int64_t matrix = largest_matrix(program);
  Matrix x{memory, rows, cols, cols};
  Matrix next{memory + matrix, rows, cols, cols};
  const Matrix gram{memory + 2 * matrix, side, side, side};
  const Matrix mixed{memory + 2 * matrix + largest_square(program), side, side, side};
  muon_direction(device, numbers, rounding_seed, scalars, gradient, momentum, x);
  for (int i = 0; i < kIterations; ++i) {
    // Uses the smaller of x x^T and x^T x; a tall matrix is multiplied from the right.
    products.multiply(device,
                      {.transpose_a = tall, .transpose_b = !tall, .a = x, .b = x, .c = gram});
    products.multiply(
        device,
        {.alpha = kQuintic, .beta = kCubic, .a = gram, .b = gram, .addend = gram, .c = mixed});
    products.multiply(
        device,
        {.beta = kLinear, .a = tall ? x : mixed, .b = tall ? mixed : x, .addend = x, .c = next});
    std::swap(x, next);
  }
  muon_move(device, numbers, scalars, x, weight, remainder);
}

}  // namespace assay::train::cuda
