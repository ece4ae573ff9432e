// What the parts of the fake NVML share. The environment variable FAKE_NVML selects the machine to
// simulate; it is read at each call.
#pragma once

#include <string_view>

#include "machine/nvml_abi.h"

namespace assay::machine::nvml {

inline constexpr unsigned kFakeGpus = 8;
// Device indices from here on are slices: in scenario "slices", two of card 1.
inline constexpr unsigned kFirstSlice = 100;

// "nvswitch": 8 × H200 whose 18 links all lead to switches;
// "hidden_switch": the same in a virtual machine, where the remote end is not reported;
// "pairs": 8 × H100 NVL, two by two over 12 links;
// "lost": nvswitch with GPU 3 off the bus;
// "slices": nvswitch with GPU 1 in slices (MIG);
// "driver_not_loaded", "mismatch": nvmlInit fails;
// "no_count": nvmlInit works, counting fails; "none": there are 0 GPUs;
// "errors": every question about a device fails; "garbage": every answer is nonsense.
bool scenario_is(std::string_view name);

unsigned index_of(Device device);

}  // namespace assay::machine::nvml
