// The JSON that src/machine writes about a machine, as tables. It may come from an old store: what
// is missing or of another type is left out.
#pragma once

#include <vector>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

// A row of two cells for each of processors, memory, system, driver and network that is known.
void add_machine_rows(Table& table, const base::Json& machine);

// GPUs and their links; none if there are none.
std::vector<Table> gpu_tables(const base::Json& machine);

}  // namespace assay::report
