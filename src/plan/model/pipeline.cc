#include "plan/model/pipeline.h"

#include <algorithm>
#include <cmath>

namespace assay::plan {

double pipeline_seconds(const Pipeline& p) {
  // The slowest stage is never idle between its first and its last chunk. Before that the others
  // work on the first micro-batch, and after it on the last one, a chunk each.
  const double busy = p.micros * p.slowest + (p.whole - p.slowest) / p.chunks;
  // While a stage waits for the first and last micro-batches, it computes deferred weight
  // gradients, if it has that many.
  const double more = p.two_rounds ? std::clamp(p.micros - p.stages, 0.0, p.stages - 1) : 0;
  const double filled = p.stages - 1 + std::min(p.micros, p.stages) - 1 + more;
  if (p.weights > 0) return std::max(p.micros * p.slowest, busy - p.weights * filled);
  if (p.chunks <= 1) return busy;
  // Micro-batches pass the chunks in groups, with as many as there are stages. A group that is not
  // full takes as long: its first one passes every chunk, and the others follow a chunk apart.
  const double groups = std::ceil(p.micros / p.stages);
  const double followers = p.micros - (groups - 1) * p.stages - 1;
  return std::max(busy, p.whole * (groups + followers / p.stages / p.chunks));
}

double micros_in_flight(const Work& work, bool last) {
  const Degrees& d = work.degrees;
  const double micros = work.batch.micros;
  if (d.pp <= 1) return 1;
  if (d.gpipe) return micros;
  if (d.zero_bubble) return std::min(micros, d.pp * (d.two_rounds ? 2 : 1));
  if (last) return std::min(micros, ((d.chunks - 1) * d.pp + 1) / d.chunks);
  return std::min(micros, d.pp) * (d.chunks > 1 ? 1 + (d.pp - 1) / d.pp / d.chunks : 1);
}

}  // namespace assay::plan
