// What a search offers fits: its memory is counted from the programs of our trainer, as `assay
// plan` counts it, and where that is more than predicted the next fastest layout is taken. Internal
// to src/plan/search.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "plan/prediction.h"
#include "plan/search/fastest_layout.h"
#include "spec/job.h"

namespace assay::plan {

// A job whose layouts are searched, on machines of one kind and number.
struct LayoutSearch {
  spec::JobSpec job;
  Work work;
  std::int64_t sequences = 0;  // per step
  base::Bytes memory;          // that a rank may have
};

// The fastest of `found` whose programs fit, with the memory that was counted. Programs that are
// too long to count, and other software, are taken as predicted. Nothing where none fits.
std::optional<LayoutChoice> fastest_counted(const LayoutSearch& search, FastestLayout found,
                                            const ModelConstants& constants);

}  // namespace assay::plan
