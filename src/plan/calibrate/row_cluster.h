// The machines of a row: from its columns, and from what is known about its cards.
#pragma once

#include "plan/calibrate/row_fields.h"
#include "plan/model/cards.h"
#include "spec/cluster.h"

namespace assay::plan {

spec::ClusterSpec row_cluster(const RowFields& row, const CardSheet& sheet);

}  // namespace assay::plan
