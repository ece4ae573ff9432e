// Reads a rank's part of a checkpoint's tensors: several threads read ahead, in pieces, while the
// caller copies earlier pieces to their destination. So reading is limited only by the disk or the
// device.
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

// Reads some of this rank's elements of a stored tensor, in the stored type.
base::Result<void> read_elements(const checkpoint::TensorSet& set,
                                 const checkpoint::StoredTensor& stored, const StateTensor& tensor,
                                 const step::Range& elements, std::span<std::byte> to);

// Reads all tensors of the parts. A tensor that is not stored with the expected type and shape
// fails with the error that `missing` returns. `take` is called on the caller's thread, in element
// order.
struct StatePart {
  std::string name;  // of the part in the checkpoint
  std::vector<StateTensor> tensors;
};
using TakeState = std::function<base::Result<void>(const step::View&, std::span<const std::byte>)>;
using MissingTensor = std::function<base::Error(const StateTensor&)>;
struct ReadAhead {
  int threads = 4;
  std::size_t pieces = 8;                              // in memory at once
  std::int64_t piece_bytes = std::int64_t{32} << 20U;  // maximum size of each
};
base::Result<void> read_state(const checkpoint::Checkpoint& from,
                              const std::vector<StatePart>& parts, const MissingTensor& missing,
                              const TakeState& take, const ReadAhead& ahead = {});

}  // namespace assay::train
