// Pipelines: which layers a stage has, and the order of its passes over micro-batches.
//
// A stage has one chunk of consecutive layers, or several (interleaved): chunk c of stage s is
// number c x stages + s of all chunks, in model order. A micro-batch passes through all chunks
// forward and then backward; each passage through a chunk is a pass.
//
// In zero-bubble H1 (Qi et al., 2023), the backward passes of 1F1B compute only the gradients of
// activations, for which the previous stage waits. The gradients of weights, for which nobody
// waits, are a separate pass, as many micro-batches later as there are stages before this one: so
// each stage has work where it would be idle in 1F1B, and no stage has more micro-batches in flight
// than 1F1B's first.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/layout.h"
#include "step/layout.h"

namespace assay::step {

struct Layers {
  std::int32_t first = 0;
  std::int32_t end = 0;  // one past the last

  [[nodiscard]] bool contains(std::int32_t layer) const { return layer >= first && layer < end; }
};

// The layers of one chunk. If layers do not divide evenly, chunks in the middle get one more,
// because the first and the last also have the embedding and the head.
Layers layers_of_chunk(std::int64_t layers, std::int64_t chunk, std::int64_t chunks);
// The number of layers in all chunks of a stage.
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
    kWeights,  // gradients of weights, if kBackward leaves them out
  };
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;  // index within the stage
  std::int32_t micro = 0;
  // Which set of buffers holds the pass's activations: micro-batches that are between their forward
  // and their last pass of a chunk have different slots.
  std::int32_t slot = 0;
};

// Whether gradients of weights are computed in separate passes.
bool defers_weight_gradients(const Layout& layout);

// The passes of one stage, in order. `backward` false: only forward passes.
std::vector<Pass> passes_of(const Layout& layout, std::int64_t micros, bool backward);

}  // namespace assay::step
