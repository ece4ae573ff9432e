// discover(): everything about this machine. Nothing is read before it is called.
#pragma once

#include <string>

#include "machine/machine.h"

namespace assay::machine {

struct DiscoverOptions {
  // Where proc/, sys/ and etc/ are; tests pass a directory with those of another machine.
  std::string root = "/";
  // What to dlopen() for NVIDIA's management library; empty: GPUs are taken from the PCI bus only
  // (the driver can take a second to wake GPUs up).
  std::string nvml_library = "libnvidia-ml.so.1";
};

// Never fails: what cannot be read stays unknown, with a line in Machine::notes.
Machine discover(const DiscoverOptions& options = {});

}  // namespace assay::machine
