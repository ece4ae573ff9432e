// The learning-rate schedule: a warm-up from zero, then cosine, linear, constant or
// warm-up-stable-decay.
#pragma once

#include <cstdint>

#include "spec/job.h"

namespace assay::train {

// The fraction of the peak rate at `step`, which counts from 1 to `steps`.
double schedule(const spec::TrainSpec& train, std::int64_t step, std::int64_t steps);

}  // namespace assay::train
