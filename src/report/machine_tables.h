// Tables made from the JSON that src/machine writes about a machine. It may come from an old store:
// keys that are missing or have another type are left out.
#pragma once

#include <vector>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

// Adds a row of two cells for each of processors, memory, system, driver and network, if known.
void add_machine_rows(PageTable& table, const base::Json& machine);

// GPUs and their links; none if there are none.
std::vector<PageTable> gpu_tables(const base::Json& machine);

}  // namespace assay::report
