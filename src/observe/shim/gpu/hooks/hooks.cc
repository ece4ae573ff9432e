// What lower parts of the library call in upper ones: the only place that knows both.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/pace/paced.h"
#include "observe/shim/gpu/pace/turns.h"

namespace assay::gpu {

constinit const Hooks hooks = {.forget_finders = forget_finders,
                               .forget_turns = forget_turns,
                               .forget_limits = forget_limits,
                               .pacing_begins = pacing_begins,
                               .limits_changed = limits_changed};

}  // namespace assay::gpu
