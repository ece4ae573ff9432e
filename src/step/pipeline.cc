#include "step/pipeline.h"

#include <algorithm>
#include <map>

namespace assay::step {
namespace {

using Direction = Pass::Direction;

// The k-th forward pass of a stage. With several chunks, micro-batches proceed in groups of as many
// as there are stages: a group passes through one chunk after the other.
Pass nth(Direction direction, std::int64_t k, std::int64_t stages, std::int64_t chunks) {
  const std::int64_t round = stages * chunks;
  auto chunk = static_cast<std::int32_t>(k % round / stages);
  if (direction == Direction::kBackward) chunk = static_cast<std::int32_t>(chunks) - 1 - chunk;
  return {direction, chunks == 1 ? 0 : chunk,
          static_cast<std::int32_t>(chunks == 1 ? k : k / round * stages + k % stages)};
}

// The number of forward passes before the first backward pass: as many as keep the later stages
// busy.
std::int64_t ahead(const Layout& layout, std::int64_t passes) {
  const std::int64_t after = layout.pipeline.ranks - 1 - layout.pipeline.rank;
  switch (layout.schedule) {
    case spec::PipelineSchedule::kGpipe:
      return passes;
    case spec::PipelineSchedule::k1f1b:
    case spec::PipelineSchedule::kZbH1:
      return std::min(passes, after);
    case spec::PipelineSchedule::kInterleaved:
      break;
  }
  return std::min(passes, 2 * after + (layout.chunks - 1) * layout.pipeline.ranks);
}

// Assigns the lowest free slot. `last`: the pass after which a micro-batch needs its slot no
// longer.
void give_slots(std::vector<Pass>& passes, Direction last) {
  std::map<std::int32_t, std::vector<bool>> taken;                          // by chunk
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> in_flight;  // chunk, micro
  for (Pass& pass : passes) {
    std::vector<bool>& slots = taken[pass.chunk];
    std::int32_t& slot = in_flight[{pass.chunk, pass.micro}];
    if (pass.direction == Direction::kForward) {
      const auto free = std::find(slots.begin(), slots.end(), false);
      slot = static_cast<std::int32_t>(free - slots.begin());
      if (free == slots.end()) slots.push_back(false);
    }
    pass.slot = slot;
    slots[static_cast<std::size_t>(slot)] = pass.direction != last;
  }
}

}  // namespace

Layers layers_of_chunk(std::int64_t layers, std::int64_t chunk, std::int64_t chunks) {
  const std::int64_t each = layers / chunks;
  const std::int64_t more = layers % chunks;
  const std::int64_t from = (chunks - more) / 2;  // the first chunk that has one more
  const auto begin = [&](std::int64_t i) {
    return static_cast<std::int32_t>(i * each + std::clamp<std::int64_t>(i - from, 0, more));
  };
  return {begin(chunk), begin(chunk + 1)};
}

std::int64_t layers_of_stage(std::int64_t layers, std::int64_t stage, std::int64_t stages,
                             std::int64_t chunks) {
  std::int64_t sum = 0;
  for (std::int64_t chunk = stage; chunk < stages * chunks; chunk += stages) {
    const Layers one = layers_of_chunk(layers, chunk, stages * chunks);
    sum += one.end - one.first;
  }
  return sum;
}

Chunk chunk_of(const Layout& layout, std::int64_t model_layers, std::int32_t chunk) {
  const std::int64_t at = chunk * layout.pipeline.ranks + layout.pipeline.rank;
  const std::int64_t chunks = layout.chunks * layout.pipeline.ranks;
  return {layers_of_chunk(model_layers, at, chunks), at == 0, at == chunks - 1};
}

bool defers_weight_gradients(const Layout& layout) {
  return layout.schedule == spec::PipelineSchedule::kZbH1;
}

std::vector<Pass> passes_of(const Layout& layout, std::int64_t micros, bool backward) {
  const std::int64_t stages = layout.pipeline.ranks;
  const std::int64_t all = micros * layout.chunks;
  std::vector<Pass> passes;
  std::int64_t forward = 0;
  const auto go = [&](Direction direction, std::int64_t k) {
    passes.push_back(nth(direction, k, stages, layout.chunks));
  };
  const bool defers = defers_weight_gradients(layout);
  const std::int64_t late = layout.pipeline.rank;  // micro-batches
  const std::int64_t first = backward ? ahead(layout, all) : all;
  while (forward < first) go(Direction::kForward, forward++);
  for (std::int64_t back = 0; backward && back < all; ++back) {
    if (forward < all) go(Direction::kForward, forward++);
    go(Direction::kBackward, back);
    if (defers && back >= late) go(Direction::kWeights, back - late);
  }
  if (!backward) return passes;
  for (std::int64_t k = std::max<std::int64_t>(0, all - late); defers && k < all; ++k) {
    go(Direction::kWeights, k);
  }
  give_slots(passes, defers ? Direction::kWeights : Direction::kBackward);
  return passes;
}

}  // namespace assay::step
