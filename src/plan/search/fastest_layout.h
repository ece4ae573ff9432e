// The fastest way to spread a job over given machines: tries every layout, micro-batch and
// recomputation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "plan/prediction.h"
#include "plan/search/layouts.h"
#include "spec/job.h"

namespace assay::plan {

// How a step is spread and what is predicted of it. batch: with the job's tokens per step.
struct LayoutChoice {
  spec::LayoutSpec layout;
  spec::BatchSpec batch;
  RecomputeKind recompute = RecomputeKind::kNone;
  base::Seconds step;
  MemoryNeed memory;
  bool counted = false;  // from the programs of our trainer, not predicted
  bool tight = false;    // nothing leaves as much memory free as it should: it may not fit
};

struct FastestLayout {
  std::optional<LayoutChoice> best;  // none where nothing fits
  std::vector<LayoutChoice> ranked;  // this one and those that come next, fastest first
  std::int64_t considered = 0;       // layouts x micro-batches x recomputations
  std::int64_t too_large = 0;        // of these, for `memory`
  base::Bytes least_memory;          // that the smallest needs
  std::vector<Rejection> rejected;   // layouts that the rules forbid
};

// On all of job.cluster; job.layout, the micro-batch and the recomputation are free, and
// `sequences` are read per step. `work` is the job's (work_of), and no rank may hold more than
// `memory`. The first of several equally fast ones.
FastestLayout fastest_layout(const spec::JobSpec& job, const Work& work, std::int64_t sequences,
                             base::Bytes memory, const ModelConstants& constants);

}  // namespace assay::plan
