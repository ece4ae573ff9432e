// The similarity of two tensors.
#pragma once

#include <cmath>
#include <vector>

namespace assay::train::testing {

struct TensorSimilarity {
  double cosine = 0;
  double ratio = 0;  // norm of b / norm of a
};

inline TensorSimilarity tensor_similarity(const std::vector<float>& a,
                                          const std::vector<float>& b) {
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  return {ab / std::sqrt(aa * bb), std::sqrt(bb / aa)};
}

}  // namespace assay::train::testing
