// Reads what a rank has of a checkpoint's tensors: several threads read ahead, in pieces, while the
// caller puts what was read before where it belongs. So a checkpoint is read as fast as the disk,
// or the device, allows.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/checkpoint.h"
#include "train/state.h"

namespace assay::train {

// Some elements of a stored tensor that this rank has, in the type they are stored in.
base::Result<void> read_elements(const checkpoint::TensorSet& set,
                                 const checkpoint::StoredTensor& stored, const StateTensor& tensor,
                                 const step::Range& elements, std::span<std::byte> to);

// All tensors of one part, which must be stored in their own type and shape: where they are not,
// the error is `missing` of the tensor. `take` is called by this thread, in the order of the
// elements.
struct StatePart {
  std::string name;  // of the checkpoint's part
  std::vector<StateTensor> tensors;
};
using TakeState = std::function<base::Result<void>(const step::View&, std::span<const std::byte>)>;
using MissingTensor = std::function<base::Error(const StateTensor&)>;
struct ReadAhead {
  int threads = 4;
  std::size_t pieces = 8;                              // in memory at once
  std::int64_t piece_bytes = std::int64_t{32} << 20U;  // of each, at most
};
base::Result<void> read_state(const checkpoint::Checkpoint& from,
                              const std::vector<StatePart>& parts, const MissingTensor& missing,
                              const TakeState& take, const ReadAhead& ahead = {});

}  // namespace assay::train
