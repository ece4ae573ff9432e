// Units: parameters that ranks exchange together. A unit is a block (or its attention and its MLP,
// each by itself), the embeddings, or what follows the last block. Its parameters lie side by side
// in buffers of their own, so that a rank's part of a unit is a range:
//
//   unit        | matrices, vectors | matrices, vectors | padding |      attention, then MLP
//   data ranks  |    0    |    1    |    2    |    3    |    4    | …    each adds up a part
//   shards      |         0         |         1         |     …          each keeps and updates one
//
// Muon updates whole matrices, so with it a block's matrices are a unit of their own, in which a
// rank's part is whole matrices. Where ranks have different experts (layout.ep), those of a block
// are a unit of their own, too: other ranks have the same ones and add up their gradients.
#pragma once

#include <string>
#include <vector>

#include "step/buffer.h"
#include "step/layout.h"
#include "step/parameter.h"

namespace assay::step {

struct Unit {
  // "embedding", "layers.3", "layers.3.mlp", "layers.3.matrices", "layers.3.experts", "head"
  std::string name;
  std::int32_t layer = kNoLayer;
  std::int64_t stage = 0;          // of the pipeline, that has it; a tied table's is the first
  std::int64_t elements = 0;       // padding included
  std::int64_t used = 0;           // the same without what is added at the end for equal parts
  std::int64_t first_element = 0;  // of all of the model's, the same for every layout
  // What each rank along `data` adds up; together, in order, the whole unit.
  std::vector<Range> parts;
  Range part;  // of this rank
  Range own;   // whose optimizer state this rank keeps: its shard's parts

  // Buffers; -1 where there is none. Weights are of the whole unit, or of `own` where ranks gather
  // them; the rest is of `own`.
  BufferId weights = -1;
  BufferId remainders = -1;
  BufferId gradients = -1;
  BufferId head_gradients = -1;  // of a table that is also the head: what the head adds
  BufferId first_moment = -1;
  BufferId second_moment = -1;

  // A range of the unit in a buffer that holds `own`.
  [[nodiscard]] View in_own(BufferId buffer, const Range& range) const {
    return {buffer, range.first - own.first, 1, range.count, range.count};
  }
  bool whole_matrices = false;  // Muon's: parts are whole matrices
  bool experts = false;         // those that this rank has, where ranks have different ones
  // The ranks that `parts` are of, those that divide the state, and whether these keep parts of the
  // weights as well, so that they are gathered before they are used.
  Axis data = Axis::kData;
  Axis shard = Axis::kShard;
  bool gathered = false;
};

// Squares of gradients are added up in blocks of this many elements, whose sums are added in the
// order of the parameters: so the norm has the same bits however parameters are spread. Parameters
// begin, and ranks' parts end, at multiples of it. Depends on the model alone.
std::int64_t norm_block(const spec::ModelSpec& model);

// The units of a model, of all stages, in its order, and the parameters' places in them.
std::vector<Unit> make_units(const spec::ModelSpec& model, const Layout& layout,
                             std::vector<Parameter>& parameters);

}  // namespace assay::step
