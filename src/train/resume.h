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

// What may differ from the run that is continued, and the data of this one (run_settings.h).
struct Continue {
  bool new_data = false;       // which is then read from its beginning
  bool new_optimizer = false;  // whose moments are then zero
  base::Json data = {};
};

// Restores this rank's part of weights and optimizer state, overwriting what the backend has.
// Imported weights come without an optimizer, which then starts with zeros. Refuses a checkpoint of
// another model, batch or seed, because that would not continue the same run, and without
// permission one of other data or another optimizer.
base::Result<Position> restore(Backend& backend, const step::Program& program,
                               const spec::JobSpec& job, const checkpoint::Checkpoint& from,
                               const Continue& how = {});

// Fails unless the checkpoint's model is that one; the error names every key that differs.
base::Result<void> check_model(const checkpoint::Checkpoint& from, const spec::ModelSpec& model);

// Restores only the weights, into a program of any purpose; types are converted.
base::Result<void> restore_weights(Backend& backend, const step::Program& program,
                                   const checkpoint::Checkpoint& from);

// Copies the learning rate and warm-up with which the run began into the job, unless the job sets
// its own: their defaults depend on the length of the run, and a run that is extended must continue
// as it began. Returns a description of every setting that differs from what the checkpoint was
// trained with, and of other data; empty if nothing does.
std::string keep_recipe(const checkpoint::Checkpoint& from, spec::JobSpec& job,
                        const base::Json& data);

// Where a checkpoint's state has the algorithms that the run used. They depend on the layout and on
// measured times, and are no training state.
inline constexpr const char* kAlgorithmsKey = "extra.algorithms";
// These algorithms (Backend::algorithms); empty if none are stored.
std::string saved_algorithms(const checkpoint::Checkpoint& from);

// The model stored in the checkpoint.
base::Result<spec::ModelSpec> model_of(const checkpoint::Checkpoint& from);

// Writes initial weights, computed on `threads` threads; 0: one per processor.
base::Result<void> initialise(Backend& backend, const step::Program& program, std::uint64_t seed,
                              int threads = 0);

}  // namespace assay::train
