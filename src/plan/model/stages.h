// How many layers the stages of a pipeline have.
#pragma once

#include "plan/model/work.h"

namespace assay::plan {

// Stages have whole layers. If these do not divide evenly, our trainer gives the stages in the
// middle one more; other software leaves the last stage room for the head, or both ends room.
struct StageLayers {
  double first = 0;
  double last = 0;
  double most = 0;
};
StageLayers stage_layers(const Work& work);

}  // namespace assay::plan
