// What a job's step will take, hold and reach, before it runs.
#pragma once

#include <span>

#include "base/result.h"
#include "base/units.h"
#include "plan/model/memory.h"
#include "plan/model/step_time.h"
#include "plan/work_of_job.h"
#include "spec/job.h"

namespace assay::plan {

struct ModelConstants {
  Constants time = shipped_constants();
  MemoryConstants memory = shipped_memory_constants();
};

struct Prediction {
  Work work;  // with the recomputation that was chosen
  StepTime step;
  MemoryNeed memory;
  bool fits = false;           // the card's memory
  double tokens_per_step = 0;  // of all ranks
  double tokens_per_second = 0;
  // Model flops utilisation of the cards' bf16 peak, by both definitions (spec/parameters.h).
  double mfu = 0;                 // without the embedding
  double mfu_with_embedding = 0;  // as often published
};

base::Result<Prediction> predict(const spec::JobSpec& job, const Assumed& assumed = {},
                                 const ModelConstants& constants = {});

struct RecomputeChoice {
  RecomputeKind kind = RecomputeKind::kNone;
  bool fits = false;
  base::Seconds step;  // only where it fits
  MemoryNeed memory;
};

// The first of these that fits `memory`, which is the fastest; where none does, the last. As the
// trainer chooses (step/recompute.h), but with the model's memory.
RecomputeChoice choose_recompute(const Work& work, const ModelConstants& constants,
                                 base::Bytes memory);

}  // namespace assay::plan
