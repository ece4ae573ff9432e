// The preset `this-machine`: a cluster of one node, described by what src/machine finds.
#pragma once

#include "machine/machine.h"
#include "spec/value.h"

namespace assay::spec {

// A document with [cluster], valid for any machine. The device's rates come from the device preset
// of the same name, if there is one; unknown values stay unset. A machine without GPUs is one CPU
// device; if there are several GPU models, only the first model's GPUs are used.
Value cluster_document(const machine::Machine& machine);

// The same for the machine this runs on.
Value this_machine_document();

}  // namespace assay::spec
