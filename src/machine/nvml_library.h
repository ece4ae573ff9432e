// NvmlLibrary: the driver's management library, loaded and initialised as long as this object
// exists.
#pragma once

#include <string>

#include "base/result.h"
#include "machine/nvml_abi.h"

namespace assay::machine::nvml {

template <class... Arguments>
using Function = Return (*)(Arguments...);

// Null where the installed library is too old (or too new) to have it.
struct Functions {
  Function<> init = nullptr;
  Function<> shutdown = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Function<char*, unsigned> driver_version = nullptr;
  Function<int*> cuda_version = nullptr;
  Function<unsigned*> device_count = nullptr;
  Function<unsigned, Device*> device_by_index = nullptr;
  Function<Device, char*, unsigned> name = nullptr;
  Function<Device, char*, unsigned> uuid = nullptr;
  Function<Device, PciInfo*> pci_info = nullptr;
  Function<Device, Memory*> memory_info = nullptr;
  Function<Device, unsigned*> enforced_power_limit = nullptr;
  Function<Device, unsigned*> power_limit = nullptr;
  Function<Device, unsigned long long*> total_energy = nullptr;  // millijoules
  Function<Device, unsigned*> power_usage = nullptr;             // milliwatts
  Function<Device, int, unsigned*> clock_info = nullptr;         // MHz
  Function<Device, unsigned long long*> clock_limits = nullptr;  // bits
  Function<Device, int, ViolationTime*> violation = nullptr;
  Function<Device, unsigned*> pcie_gen = nullptr;
  Function<Device, unsigned*> pcie_width = nullptr;
  Function<Device, unsigned*> max_pcie_gen = nullptr;
  Function<Device, unsigned*> max_pcie_width = nullptr;
  Function<Device, unsigned*> core_count = nullptr;
  Function<Device, int*, int*> compute_capability = nullptr;
  Function<Device, int, FieldValue*> field_values = nullptr;
  Function<Device, unsigned, int*> nvlink_state = nullptr;
  Function<Device, unsigned, int*> nvlink_remote_type = nullptr;
  Function<Device, unsigned, PciInfo*> nvlink_remote_pci = nullptr;
  Function<Device, Device, int*> common_ancestor = nullptr;
  Function<Device, Utilization*> utilization = nullptr;
  Function<Device, int, unsigned*> pcie_throughput = nullptr;  // takes 20 ms
  Function<Device, unsigned*, unsigned*> mig_mode = nullptr;   // now, and after a reset
  Function<Device, unsigned*> max_slices = nullptr;
  Function<Device, unsigned, Device*> slice_by_index = nullptr;
  Function<Device, unsigned*> gpu_instance = nullptr;
  Function<Device, unsigned*> compute_instance = nullptr;
  Function<Device, GpmSupport*> gpm_support = nullptr;
  Function<GpmSample*> gpm_sample_make = nullptr;
  Function<GpmSample> gpm_sample_free = nullptr;
  Function<Device, GpmSample> gpm_sample = nullptr;
  Function<Device, unsigned, GpmSample> gpm_slice_sample = nullptr;
  Function<GpmMetrics*> gpm_metrics = nullptr;
};

class NvmlLibrary {
 public:
  // The error says why NVML cannot be used, as text for Machine::notes.
  static base::Result<NvmlLibrary> open(const std::string& name);

  NvmlLibrary(NvmlLibrary&& other) noexcept;
  NvmlLibrary& operator=(NvmlLibrary&&) = delete;
  ~NvmlLibrary();  // shuts NVML down, then unloads it

  [[nodiscard]] const Functions& functions() const { return functions_; }
  [[nodiscard]] std::string error_text(Return result) const;

 private:
  explicit NvmlLibrary(void* handle);

  void* handle_ = nullptr;
  bool initialised_ = false;
  Functions functions_;
};

// Calls a function that the installed library may lack.
template <class... Parameters, class... Arguments>
Return call(Function<Parameters...> function, Arguments... arguments) {
  return function == nullptr ? kFunctionNotFound : function(arguments...);
}

}  // namespace assay::machine::nvml
