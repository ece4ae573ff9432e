// What a run's processes counted of GPU work, in the words of the store.
#pragma once

#include <vector>

#include "observe/collect/gpu_count.h"
#include "store/gpu_work.h"
#include "store/run.h"

namespace assay::lineage {

// What could not be counted is added to `problems`.
store::GpuWork gpu_work(const collect::GpuReport& report, std::vector<store::Missed>& problems);

}  // namespace assay::lineage
