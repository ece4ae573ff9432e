#include "plan/prediction.h"

#include "spec/parameters.h"
#include "step/recompute.h"

namespace assay::plan {

RecomputeChoice choose_recompute(const Work& work, const ModelConstants& constants,
                                 base::Bytes memory) {
  RecomputeChoice choice;
  Work tried = work;
  const auto kinds = recomputations_of(work.software.framework);
  choice.fits = step::choose_recompute(kinds, [&](RecomputeKind kind) {
    choice.kind = tried.recompute = kind;
    choice.memory = memory_need(tried, constants.memory);
    return choice.memory.total() <= memory;
  });
  if (choice.fits) choice.step = step_seconds(tried, constants.time);
  return choice;
}

base::Result<Prediction> predict(const spec::JobSpec& job, const Assumed& assumed,
                                 const ModelConstants& constants) {
  Prediction p;
  ASSAY_TRY(p.work, work_of(job, assumed));
  if (job.train.recompute == spec::Recompute::kAuto) {
    p.work.recompute = choose_recompute(p.work, constants, p.work.card.memory).kind;
  }
  p.memory = memory_need(p.work, constants.memory);
  p.fits = p.memory.total() <= p.work.card.memory;
  p.step = step_time(p.work, constants.time);

  p.tokens_per_step = static_cast<double>(job.tokens_per_step());
  p.tokens_per_second = p.tokens_per_step / p.step.total.count();
  const spec::FlopsPerToken flops = spec::flops_per_token(job.model, job.batch.sequence);
  const double peak = p.work.card.bf16_flops.count() * p.work.degrees.ranks;
  p.mfu = p.tokens_per_second * flops.without_embedding / peak;
  p.mfu_with_embedding = p.tokens_per_second * flops.with_embedding / peak;
  return p;
}

}  // namespace assay::plan
