#include "plan/model/stages.h"

#include <algorithm>
#include <cmath>

#include "step/pipeline.h"

namespace assay::plan {
namespace {

StageLayers of_trainer(const Work& work) {
  const Degrees& d = work.degrees;
  const auto stages = static_cast<std::int64_t>(d.pp);
  const auto of_stage = [&](std::int64_t stage) {
    return static_cast<double>(step::layers_of_stage(static_cast<std::int64_t>(work.shape.layers),
                                                     stage, stages,
                                                     static_cast<std::int64_t>(d.chunks)));
  };
  StageLayers found{of_stage(0), of_stage(stages - 1), 0};
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    found.most = std::max(found.most, of_stage(stage));
  }
  return found;
}

}  // namespace

StageLayers stage_layers(const Work& work) {
  const Degrees& d = work.degrees;
  const double layers = work.shape.layers;
  if (work.software.framework == Framework::kAssay) {
    const double all_chunks = d.pp * d.chunks;
    const bool even = layers < all_chunks || std::fmod(layers, all_chunks) == 0;
    if (d.pp > 1 && !even) return of_trainer(work);
    return {layers / d.pp, layers / d.pp, layers / d.pp};
  }
  const double chunks = std::clamp(d.chunks, 1.0, std::ceil(layers / d.pp));
  const double most = std::ceil(layers / (d.pp * chunks)) * chunks;
  const double room = most * d.pp - layers;
  if (d.pp <= 1 || room == 0) return {layers / d.pp, layers / d.pp, layers / d.pp};
  const double at_the_end = d.spared_ends ? std::ceil(room / 2) : room;
  const auto without = [&](double spared) { return most - std::min(spared, most - 1); };
  return {without(room - at_the_end), without(at_the_end), most};
}

}  // namespace assay::plan
