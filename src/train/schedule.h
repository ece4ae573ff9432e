// The learning rate of a step: a warm-up from zero, then one of four ways down.
#pragma once

#include <cstdint>

#include "spec/job.h"

namespace assay::train {

// As a fraction of the highest. `step` counts from 1 to `steps`.
double schedule(const spec::TrainSpec& train, std::int64_t step, std::int64_t steps);

}  // namespace assay::train
