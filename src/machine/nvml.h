// GPUs as NVML reports them, as plain data. The library is open only during query_nvml().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"

namespace assay::machine {

// The far end of one active NVLink.
struct NvlinkEnd {
  enum class Remote { kUnknown, kGpu, kSwitch };
  Remote remote = Remote::kUnknown;
  std::string bus_id;  // of the remote device, as sysfs writes it; empty if unknown
};

struct NvmlGpu {
  Gpu gpu;  // numa_node stays empty: NVML does not know
  std::vector<NvlinkEnd> nvlinks;
};

struct NvmlAnswer {
  std::string driver_version;
  std::string cuda_version;
  std::vector<NvmlGpu> gpus;
  std::vector<GpuLink> pairs;  // every a < b; only `pcie` is filled in
  std::vector<std::string> notes;
};

// An error if NVML cannot be used at all; facts that are missing are listed in `notes`.
base::Result<NvmlAnswer> query_nvml(const std::string& library);

}  // namespace assay::machine
