// assay checkpoint diff A B.
#pragma once

#include "cli/verb.h"

namespace assay::cli {

Verb checkpoint_diff_verb(const Session& session);

}  // namespace assay::cli
