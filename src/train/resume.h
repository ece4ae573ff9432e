// From a checkpoint, or from nothing, into a backend's memory.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/snapshot.h"

namespace assay::train {

// All of these are for a backend that was just prepared: moments that nobody writes are zeros.

// Weights and optimizer into the backend, as far as they are this rank's. Refused: another model,
// another batch or seed, because the run would not be the one that was stopped.
base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from);

// Weights alone, into a program of any purpose; the types may differ.
base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from);

// The model that the checkpoint is of.
base::Result<spec::ModelSpec> model_of(const checkpoint::Checkpoint& from);

// Initial weights.
base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed);

}  // namespace assay::train
