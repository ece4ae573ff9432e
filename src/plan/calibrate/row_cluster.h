// The machines of a row: what it says of them, and what is known of such cards.
#pragma once

#include "plan/calibrate/row_fields.h"
#include "plan/model/cards.h"
#include "spec/cluster.h"

namespace assay::plan {

spec::ClusterSpec row_cluster(const RowFields& row, const CardSheet& sheet);

}  // namespace assay::plan
