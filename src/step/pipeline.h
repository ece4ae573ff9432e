// Pipelines: which layers a stage has, and in which order it passes micro-batches through them.
//
// A stage has one chunk of neighbouring layers, or several (interleaved): chunk c of stage s is the
// (c x stages + s)-th of all chunks, in the order of the model. A micro-batch goes forward through
// all chunks and back; each of these is a pass.
//
// Zero-bubble H1 (Qi et al., 2023) is 1F1B whose backward passes make the gradients of activations
// alone, for which the stage before waits. The gradients of weights, for which nobody waits, are a
// pass of their own, as many micro-batches later as there are stages before this one: each stage
// then has work where it would wait in 1F1B, and no stage has more micro-batches in flight than
// 1F1B's first.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/layout.h"
#include "step/layout.h"

namespace assay::step {

struct Layers {
  std::int32_t first = 0;
  std::int32_t end = 0;  // after the last

  [[nodiscard]] bool contains(std::int32_t layer) const { return layer >= first && layer < end; }
};

// Of one chunk. Where layers do not come out even, chunks in the middle have one more: the first
// and the last have the embedding and the head as well.
Layers layers_of_chunk(std::int64_t layers, std::int64_t chunk, std::int64_t chunks);
// How many layers the chunks of a stage have together.
std::int64_t layers_of_stage(std::int64_t layers, std::int64_t stage, std::int64_t stages,
                             std::int64_t chunks);

// One of a stage's chunks: its layers, and whether the model begins or ends with it.
struct Chunk {
  Layers layers;
  bool first = false;
  bool last = false;
};
Chunk chunk_of(const Layout& layout, std::int64_t model_layers, std::int32_t chunk);

struct Pass {
  enum class Direction : std::uint8_t {
    kForward,
    kBackward,
    kWeights,  // gradients of weights, where kBackward leaves them out
  };
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;  // of the stage
  std::int32_t micro = 0;
  // Where the pass keeps activations: micro-batches that are between their forward and their last
  // pass of one chunk have different ones.
  std::int32_t slot = 0;
};

// Whether gradients of weights have passes of their own.
bool defers_weight_gradients(const Layout& layout);

// The passes of one stage, in order. `backward` false: forward passes alone.
std::vector<Pass> passes_of(const Layout& layout, std::int64_t micros, bool backward);

}  // namespace assay::step
