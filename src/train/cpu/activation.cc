// The activation functions of an MLP: SwiGLU, GELU, squared ReLU.
#include <algorithm>
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

void activate(Device& device, spec::Mlp kind, Matrix inner, RowWeights by, Matrix a) {
  device.executed(step::OpKind::kActivate, {inner, by.weights, by.slots}, {a});
  device.ranges(a.rows, kActivationRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* gate = inner.row(t);
      const float* up = gate + a.cols;
      float* to = a.row(t);
      if (!by.empty() && by.slots.data[t] < 0) {  // an unused row
        std::fill_n(to, a.cols, 0.0F);
        continue;
      }
      for (std::int64_t i = 0; i < a.cols; ++i) {
        to[i] = kind == spec::Mlp::kSwiglu ? gate[i] * sigmoid(gate[i]) * up[i]
                                           : plain(kind, gate[i]).value;
      }
      if (by.empty()) continue;
      const float weight = by.of_row(by.weights, t);
      for (std::int64_t i = 0; i < a.cols; ++i) to[i] *= weight;
    }
  });
}

void activate_grad(Device& device, spec::Mlp kind, Matrix inner, Matrix da, RowWeights by,
                   Matrix dinner, Matrix dweights, Matrix a) {
  device.executed(step::OpKind::kActivateGrad, {inner, da, by.weights, by.slots},
                  {dinner, dweights, a});
  device.ranges(da.rows, kActivationRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      if (!by.empty() && by.slots.data[t] < 0) continue;
      const float weight = by.empty() ? 1.0F : by.of_row(by.weights, t);
      double of_weight = 0;
      for (std::int64_t i = 0; i < da.cols; ++i) {
        const float d = weight * da.row(t)[i];
        const float gate = inner.row(t)[i];
        float value = 0;
        float slope = 0;
        if (kind == spec::Mlp::kSwiglu) {
          const float up = inner.row(t)[da.cols + i];
          const float s = sigmoid(gate);
          const float silu = gate * s;
          slope = up * (s + silu * (1 - s));
          value = silu * up;
          dinner.row(t)[da.cols + i] = d * silu;
        } else {
          const ValueAndSlope f = plain(kind, gate);
          slope = f.slope;
          value = f.value;
        }
        dinner.row(t)[i] = d * slope;
        of_weight += static_cast<double>(da.row(t)[i]) * static_cast<double>(value);
        if (!a.empty()) a.row(t)[i] = by.empty() ? value : weight * value;
      }
      if (!by.empty()) by.of_row(dweights, t) = static_cast<float>(of_weight);
    }
  });
}

}  // namespace assay::train::cpu
