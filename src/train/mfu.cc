#include "train/mfu.h"

#include "spec/parameters.h"

namespace assay::train {

FlopsPerToken flops_per_token(const spec::ModelSpec& model, std::int64_t sequence) {
  const spec::Parameters parameters = spec::parameters_of(model);
  const double attention = 12.0 * static_cast<double>(model.layers) *
                           static_cast<double>(model.q_dim()) * static_cast<double>(sequence);
  return {6.0 * static_cast<double>(parameters.total) + attention,
          6.0 * static_cast<double>(parameters.matmul) + attention};
}

}  // namespace assay::train
