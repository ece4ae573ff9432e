// Reads the figures of a suite file: published values, and where ours are found.
#pragma once

#include "spec/value.h"
#include "suite/suite.h"

namespace assay::suite {

// Adds the [[table]]s, which refer to [record.NAME]s, to a suite whose cases are known. Either may
// be null.
base::Result<void> read_tables(const spec::Value* tables, const spec::Value* records, Suite& suite);

}  // namespace assay::suite
