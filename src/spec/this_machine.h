// The preset `this-machine`: a cluster of one node, made from what src/machine finds.
#pragma once

#include "machine/machine.h"
#include "spec/value.h"

namespace assay::spec {

// A document with [cluster], valid whatever the machine is. The device takes its rates from the
// device preset of the same name, if there is one; what is not known, or cannot be, stays unset. A
// machine without GPUs is one CPU device; of GPUs of several models, the first model's are taken.
Value cluster_document(const machine::Machine& machine);

// The same for the machine this runs on.
Value this_machine_document();

}  // namespace assay::spec
