// What the parts of the pretended NVML share. Which machine it pretends to be stands in the
// environment variable FAKE_NVML at the time of each call.
#pragma once

#include <string_view>

#include "machine/nvml_abi.h"

namespace assay::machine::nvml {

inline constexpr unsigned kFakeGpus = 8;
// Slices are devices from here on: two of card 1 where cards are in slices.
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
