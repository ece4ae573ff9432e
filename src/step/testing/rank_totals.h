// The totals of a rank's whole step: each distinct kind of block once, times the number of such
// blocks, with all that is exchanged about parameters and the optimizer. A test compares them with
// the sum over the program's ops (totals_test.cc), so that the way in which totals are built, which
// micro_totals() shares, is checked against everything that a step has.
#pragma once

#include "base/result.h"
#include "step/totals.h"

namespace assay::step::testing {

// Exact. Fails in the same cases as build(). Takes about a millisecond: parameters are listed one
// by one, because a rank's part of them depends on their positions.
base::Result<Totals> totals_of(const spec::ModelSpec& model, const Choices& choices);

}  // namespace assay::step::testing
