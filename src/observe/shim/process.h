// Beginnings and ends of processes: of those that fork and open no file nobody else would know.
#pragma once

namespace assay::shim {

// From now on forks and exits of this process and its children are recorded. Once, when the shim
// starts.
void watch_process();

}  // namespace assay::shim
