#include "plan/fastest_layout.h"

#include <algorithm>
#include <limits>

namespace assay::plan {

FastestLayout fastest_layout(const spec::JobSpec& job, const Work& work, std::int64_t sequences,
                             double memory, const ModelConstants& constants) {
  FastestLayout found;
  found.least_memory = std::numeric_limits<double>::infinity();
  Layouts layouts = layouts_of(job, sequences);
  found.rejected = std::move(layouts.rejected);
  const auto recomputations =
      static_cast<std::int64_t>(recomputations_of(work.software.framework).size());
  Work tried = work;
  spec::BatchSpec batch = job.batch;
  double fastest = std::numeric_limits<double>::infinity();
  for (const spec::LayoutSpec& layout : layouts.valid) {
    const std::int64_t per_rank = sequences / layout.data_ranks();
    const std::vector<std::int64_t> micro_batches = divisors_of(per_rank);
    found.considered += recomputations * static_cast<std::int64_t>(micro_batches.size());
    for (const std::int64_t micro_batch : micro_batches) {
      batch.micro_batch = micro_batch;
      batch.accumulate = per_rank / batch.micro_batch;
      spread(tried, layout, batch);
      MemoryNeed need;
      const bool fits = choose_recompute(tried, constants.memory, memory, need);
      found.least_memory = std::min(found.least_memory, need.total());
      if (!fits) {
        found.too_large += recomputations;
        continue;
      }
      const double seconds = step_seconds(tried, constants.time);
      if (!(seconds < fastest)) continue;
      fastest = seconds;
      found.best = {layout, batch, tried.recompute, base::Seconds(seconds), need};
    }
  }
  return found;
}

}  // namespace assay::plan
