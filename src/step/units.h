// Units: parameters that ranks exchange together. A unit is a block (or its attention and MLP
// separately), the embeddings, or what follows the last block. Its parameters are contiguous in
// separate buffers, so that a rank's part of a unit is a range:
//
//   unit        | matrices, vectors | matrices, vectors | padding |      attention, then MLP
//   data ranks  |    0    |    1    |    2    |    3    |    4    | …    each adds up a part
//   shards      |         0         |         1         |     …          each keeps and updates one
//
// Muon updates whole matrices, so with it a block's matrices are a separate unit, in which a rank's
// part is whole matrices. With expert parallelism (layout.ep) a block's experts are also a separate
// unit: their gradients are summed over a different group, the ranks that have the same experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "step/buffer.h"
#include "step/layout.h"
#include "step/parameter.h"

namespace assay::step {

struct Unit {
  // "embedding", "layers.3", "layers.3.mlp", "layers.3.matrices", "layers.3.experts", "head"
  std::string name;
  std::int32_t layer = kNoLayer;
  std::int64_t stage = 0;          // pipeline stage that has it; for a tied table the first
  std::int64_t elements = 0;       // including padding
  std::int64_t used = 0;           // without the padding at the end that makes parts equal
  std::int64_t first_element = 0;  // index among the model's elements, for any layout
  // The part that each rank along `data` sums; in order, they are the whole unit.
  std::vector<Range> parts;
  Range part;  // this rank's
  Range own;   // this rank's shard: the part whose optimizer state it keeps

  // Buffers; -1: none. Weights are the whole unit, or only `own` if they are gathered; the others
  // are only `own`.
  BufferId weights = -1;
  BufferId remainders = -1;
  BufferId gradients = -1;
  BufferId head_gradients = -1;  // for a table that is also the head: the head's contribution
  BufferId first_moment = -1;
  BufferId second_moment = -1;

  // A range of the unit, within a buffer that holds `own`.
  [[nodiscard]] View in_own(BufferId buffer, const Range& range) const {
    return {buffer, range.first - own.first, 1, range.count, range.count};
  }
  bool whole_matrices = false;  // for Muon: parts are whole matrices
  bool experts = false;         // with expert parallelism: this rank's experts
  // The axis of the ranks in `parts`, the axis of those that divide the state, and whether the
  // latter also divide the weights, which are then gathered before use.
  Axis data = Axis::kData;
  Axis shard = Axis::kShard;
  bool gathered = false;
};

// Gradients are squared and summed in blocks of this many elements, whose sums are added in the
// order of the parameters: so the norm has the same bits for every layout. Parameters begin, and
// ranks' parts end, at multiples of it. Depends only on the model.
std::int64_t norm_block(const spec::ModelSpec& model);

// The units of a model, for all stages, in its order; also sets the parameters' positions in them.
std::vector<Unit> make_units(const spec::ModelSpec& model, const Layout& layout,
                             std::vector<Parameter>& parameters);

// The size of each kind of unit on a tensor- and expert-parallel rank; with the number of data
// ranks it determines what they exchange and sum. Elements, before padding to equal parts for all
// data ranks; 0: there is no such unit.
struct UnitSizes {
  std::int64_t attention = 0;  // of a block, if its halves are separate units
  std::int64_t dense_mlp = 0;
  std::int64_t mixture_mlp = 0;
  // With expert parallelism, a mixture's experts are a separate unit, and the rest of its block is
  // another.
  std::int64_t experts = 0;
  std::int64_t beside_experts = 0;
  std::int64_t embedding = 0;
  std::int64_t positions = 0;
  std::int64_t head = 0;   // with the final norm
  std::int64_t block = 1;  // norm_block(): ranks' parts end at multiples of it

  // Including padding.
  [[nodiscard]] std::int64_t filled(std::int64_t elements, std::int64_t data_ranks) const {
    const std::int64_t multiple = data_ranks * block;
    return (elements + multiple - 1) / multiple * multiple;
  }
};

// For AdamW, whose units are padded; Muon's matrices are not.
UnitSizes unit_sizes(const spec::ModelSpec& model, std::int64_t tensor_ranks,
                     std::int64_t expert_ranks = 1);

}  // namespace assay::step
