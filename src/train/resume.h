// Loads a backend's memory from a checkpoint, or initialises it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/snapshot.h"

namespace assay::train {

// initialise() and restore_weights() expect a backend that was just prepared, with zeroed memory.

// Restores this rank's part of weights and optimizer, whatever the backend has of another; of
// imported weights, which come without an optimizer, it begins with zeros. A checkpoint of another
// model, batch, optimizer or seed is refused, because the run would not be the one that was
// stopped.
base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from);

// Restores the weights only, into a program of any purpose; types are converted.
base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from);

// Puts the learning rate and the warm-up that the run was begun with into the job, where the job
// does not set its own: what is usual depends on the run's length, and a run that is made longer
// goes on as it began. Returns what is not as it was, in words; empty if all is.
std::string keep_recipe(const checkpoint::Checkpoint& from, spec::JobSpec& job);

// The algorithms that the run was computed with (Backend::algorithms); empty if none are stored.
std::string saved_algorithms(const checkpoint::Checkpoint& from);

// The model stored in the checkpoint.
base::Result<spec::ModelSpec> model_of(const checkpoint::Checkpoint& from);

// Initial weights, made on `threads` threads; 0: on all processors.
base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed,
                              int threads = 0);

}  // namespace assay::train
