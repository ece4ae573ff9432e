#include "plan/model/pipeline.h"

#include <algorithm>
#include <cmath>

namespace assay::plan {

double pipeline_seconds(const Pipeline& p) {
  // The slowest stage is never idle between its first and its last chunk. Before that the others
  // work on the first micro-batch, and after it on the last one, a chunk each.
  const double busy = p.micros * p.slowest + (p.whole - p.slowest) / p.chunks;
  if (p.chunks <= 1) return busy;
  // Micro-batches go round in groups of as many as there are stages. A group that is not full takes
  // as long to come round: its first one passes every chunk, and the others follow a chunk apart.
  const double groups = std::ceil(p.micros / p.stages);
  const double followers = p.micros - (groups - 1) * p.stages - 1;
  return std::max(busy, p.whole * (groups + followers / p.stages / p.chunks));
}

}  // namespace assay::plan
