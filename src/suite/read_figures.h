// The figures of a suite file: published ones, and where ours stand.
#pragma once

#include "spec/value.h"
#include "suite/suite.h"

namespace assay::suite {

// [[table]] and [record.NAME], either of which may be null, into a suite whose steps are known.
base::Result<void> read_tables(const spec::Value* tables, const spec::Value* records, Suite& suite);

// "<= 1", ">= 0.9", "within 15%"
base::Result<Goal> parse_goal(std::string_view text);

}  // namespace assay::suite
