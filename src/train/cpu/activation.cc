// The activation functions of an MLP: SwiGLU, GELU, squared ReLU.
#include <cmath>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kActivationRows = 16;

float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

// GELU in its tanh form, as GPT-2 was trained with.
constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

struct ValueAndSlope {
  float value = 0;
  float slope = 0;
};

ValueAndSlope plain(spec::Mlp kind, float x) {
  if (kind == spec::Mlp::kRelu2) {
    const float positive = x > 0 ? x : 0;
    return {positive * positive, 2 * positive};
  }
  const float inner = kGeluScale * (x + kGeluCube * x * x * x);
  const float t = std::tanh(inner);
  const float inner_slope = kGeluScale * (1 + 3 * kGeluCube * x * x);
  return {0.5F * x * (1 + t), 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * inner_slope};
}

}  // namespace

void activate(Device& device, spec::Mlp kind, Matrix inner, Matrix a) {
  device.executed(step::Kind::kActivate, {inner}, {a});
  device.ranges(a.rows, kActivationRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* gate = inner.row(t);
      const float* up = gate + a.cols;
      float* to = a.row(t);
      for (std::int64_t i = 0; i < a.cols; ++i) {
        to[i] = kind == spec::Mlp::kSwiglu ? gate[i] * sigmoid(gate[i]) * up[i]
                                           : plain(kind, gate[i]).value;
      }
    }
  });
}

void activate_grad(Device& device, spec::Mlp kind, Matrix inner, Matrix da, Matrix dinner,
                   Matrix a) {
  device.executed(step::Kind::kActivateGrad, {inner, da}, {dinner, a});
  device.ranges(da.rows, kActivationRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t i = 0; i < da.cols; ++i) {
        const float d = da.row(t)[i];
        const float gate = inner.row(t)[i];
        float value = 0;
        if (kind == spec::Mlp::kSwiglu) {
          const float up = inner.row(t)[da.cols + i];
          const float s = sigmoid(gate);
          const float silu = gate * s;
          dinner.row(t)[i] = d * up * (s + silu * (1 - s));
          dinner.row(t)[da.cols + i] = d * silu;
          value = silu * up;
        } else {
          const ValueAndSlope f = plain(kind, gate);
          dinner.row(t)[i] = d * f.slope;
          value = f.value;
        }
        if (!a.empty()) a.row(t)[i] = value;
      }
    }
  });
}

}  // namespace assay::train::cpu
