#include "spec/mfu.h"

#include "spec/parameters.h"

namespace assay::spec {

FlopsPerToken flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  const Parameters parameters = parameters_of(model);
  const double attention = 12.0 * static_cast<double>(model.layers) *
                           static_cast<double>(model.q_dim()) * static_cast<double>(sequence);
  // Experts that a token is not sent to multiply nothing.
  const std::int64_t idle = parameters.total - parameters.active;
  return {6.0 * static_cast<double>(parameters.active) + attention,
          6.0 * static_cast<double>(parameters.matmul - idle) + attention};
}

}  // namespace assay::spec
