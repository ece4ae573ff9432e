// Between a backend's memory and a checkpoint: what is saved, and what is read back.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/write.h"

namespace assay::train {

// Where a run stands, apart from its tensors.
struct Position {
  std::int64_t step = 0;    // done
  std::int64_t tokens = 0;  // read
  std::uint64_t cursor = 0;
};

// A copy of everything that the next step depends on. Called by every rank; the first gets whole
// tensors, put together from what each holds, and the others none.
base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, comm::Communicator& ranks,
                                                 const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position);

// Weights and optimizer into the backend, as far as they are this rank's. Refused: another model,
// another batch or seed, because the run would not be the one that was stopped.
base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from);

// Weights alone, into a program of any purpose; the types may differ.
base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from);

// The model that the checkpoint is of.
base::Result<spec::ModelSpec> model_of(const checkpoint::Checkpoint& from);

// Initial weights, and moments of zero.
base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed);

}  // namespace assay::train
