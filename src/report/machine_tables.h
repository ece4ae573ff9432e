// A machine, as src/machine writes it to JSON, in tables. Stores of any age, and whatever wrote
// into them, must not trip this: what is not there or is something else is left out.
#pragma once

#include <vector>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

// Processors, memory, system, driver, network: a row of two cells for each that is known.
void add_machine_rows(Table& table, const base::Json& machine);

// GPUs and how they are connected; none where there are none.
std::vector<Table> gpu_tables(const base::Json& machine);

}  // namespace assay::report
