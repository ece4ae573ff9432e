// discover(): looks at the machine. The only thing in this room that touches it; nothing is read
// before it is called.
#pragma once

#include <string>

#include "machine/machine.h"

namespace assay::machine {

struct DiscoverOptions {
  // Where proc/, sys/ and etc/ are; a directory of one's own pretends to be another machine.
  std::string root = "/";
  // What to dlopen() for NVIDIA's management library; empty to leave the GPU driver alone (it can
  // take a second to wake GPUs up) and take GPUs from the PCI bus.
  std::string nvml_library = "libnvidia-ml.so.1";
};

// Never fails: what cannot be learnt stays unknown and Machine::notes says so.
Machine discover(const DiscoverOptions& options = {});

}  // namespace assay::machine
