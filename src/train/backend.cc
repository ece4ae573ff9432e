#include "train/backend.h"

namespace assay::train {

base::Result<Scalars> run_step(Backend& backend, const step::Program& program,
                               const StepSettings& settings, const BatchSource& batches) {
  backend.begin_step(settings);
  const auto count = static_cast<std::size_t>(program.micro_tokens());
  std::vector<std::int32_t> tokens(count);
  std::vector<std::int32_t> targets(program.targets.buffer >= 0 ? count : 0);
  std::int32_t micro = -1;
  for (const step::Op& op : program.ops) {
    if (op.phase != step::Phase::kOptimizer && op.micro != micro) {
      micro = op.micro;
      ASSAY_TRY_VOID(batches(micro, tokens, targets));
      backend.set_batch(tokens, targets);
    }
    ASSAY_TRY_VOID(backend.execute(op));
  }
  return backend.finish_step();
}

}  // namespace assay::train
