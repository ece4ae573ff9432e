// See nvml_library.h.
#include "machine/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace assay::machine::nvml {
namespace {

template <class F>
void look_up(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
}

Functions look_up_all(void* handle) {
  Functions f;
  look_up(handle, "nvmlInit_v2", f.init);
  look_up(handle, "nvmlShutdown", f.shutdown);
  look_up(handle, "nvmlErrorString", f.error_string);
  look_up(handle, "nvmlSystemGetDriverVersion", f.driver_version);
  look_up(handle, "nvmlSystemGetCudaDriverVersion_v2", f.cuda_version);
  look_up(handle, "nvmlDeviceGetCount_v2", f.device_count);
  look_up(handle, "nvmlDeviceGetHandleByIndex_v2", f.device_by_index);
  look_up(handle, "nvmlDeviceGetName", f.name);
  look_up(handle, "nvmlDeviceGetUUID", f.uuid);
  look_up(handle, "nvmlDeviceGetPciInfo_v3", f.pci_info);
  look_up(handle, "nvmlDeviceGetMemoryInfo", f.memory_info);
  look_up(handle, "nvmlDeviceGetEnforcedPowerLimit", f.enforced_power_limit);
  look_up(handle, "nvmlDeviceGetPowerManagementLimit", f.power_limit);
  look_up(handle, "nvmlDeviceGetTotalEnergyConsumption", f.total_energy);
  look_up(handle, "nvmlDeviceGetPowerUsage", f.power_usage);
  look_up(handle, "nvmlDeviceGetClockInfo", f.clock_info);
  look_up(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", f.clock_limits);
  look_up(handle, "nvmlDeviceGetViolationStatus", f.violation);
  look_up(handle, "nvmlDeviceGetCurrPcieLinkGeneration", f.pcie_gen);
  look_up(handle, "nvmlDeviceGetCurrPcieLinkWidth", f.pcie_width);
  look_up(handle, "nvmlDeviceGetMaxPcieLinkGeneration", f.max_pcie_gen);
  look_up(handle, "nvmlDeviceGetMaxPcieLinkWidth", f.max_pcie_width);
  look_up(handle, "nvmlDeviceGetNumGpuCores", f.core_count);
  look_up(handle, "nvmlDeviceGetCudaComputeCapability", f.compute_capability);
  look_up(handle, "nvmlDeviceGetFieldValues", f.field_values);
  look_up(handle, "nvmlDeviceGetNvLinkState", f.nvlink_state);
  look_up(handle, "nvmlDeviceGetNvLinkRemoteDeviceType", f.nvlink_remote_type);
  look_up(handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2", f.nvlink_remote_pci);
  look_up(handle, "nvmlDeviceGetTopologyCommonAncestor", f.common_ancestor);
  look_up(handle, "nvmlDeviceGetUtilizationRates", f.utilization);
  look_up(handle, "nvmlDeviceGetPcieThroughput", f.pcie_throughput);
  look_up(handle, "nvmlDeviceGetMigMode", f.mig_mode);
  look_up(handle, "nvmlDeviceGetMaxMigDeviceCount", f.max_slices);
  look_up(handle, "nvmlDeviceGetMigDeviceHandleByIndex", f.slice_by_index);
  look_up(handle, "nvmlDeviceGetGpuInstanceId", f.gpu_instance);
  look_up(handle, "nvmlDeviceGetComputeInstanceId", f.compute_instance);
  look_up(handle, "nvmlGpmQueryDeviceSupport", f.gpm_support);
  look_up(handle, "nvmlGpmSampleAlloc", f.gpm_sample_make);
  look_up(handle, "nvmlGpmSampleFree", f.gpm_sample_free);
  look_up(handle, "nvmlGpmSampleGet", f.gpm_sample);
  look_up(handle, "nvmlGpmMigSampleGet", f.gpm_slice_sample);
  look_up(handle, "nvmlGpmMetricsGet", f.gpm_metrics);
  return f;
}

std::string init_hint(Return result) {
  switch (result) {
    case kDriverNotLoaded:
      return "load the nvidia kernel module";
    case kNoPermission:
      return "allow this user to open /dev/nvidiactl";
    case kVersionMismatch:
      return "the driver was updated while its kernel module stayed loaded: reload it or reboot";
    default:
      return {};
  }
}

}  // namespace

NvmlLibrary::NvmlLibrary(void* handle) : handle_(handle), functions_(look_up_all(handle)) {}

NvmlLibrary::NvmlLibrary(NvmlLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      initialised_(std::exchange(other.initialised_, false)),
      functions_(other.functions_) {}

NvmlLibrary::~NvmlLibrary() {
  if (initialised_) functions_.shutdown();
  if (handle_ != nullptr) ::dlclose(handle_);
}

base::Result<NvmlLibrary> NvmlLibrary::open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = ::dlerror();
    const std::string_view reason = error == nullptr ? "cannot be loaded" : error;
    const bool missing = reason.find("No such file") != std::string_view::npos;
    return base::fail(
        base::unfit_error({}, missing ? fmt::format("no NVIDIA driver here ({} not found)", name)
                                      : fmt::format("no NVIDIA driver here ({})", reason)));
  }
  NvmlLibrary library(handle);
  const Functions& f = library.functions_;
  // Without shutdown there is no clean way back out, so NVML is not entered.
  if (f.init == nullptr || f.shutdown == nullptr || f.device_count == nullptr ||
      f.device_by_index == nullptr) {
    return base::fail(base::unfit_error(name, "lacks functions that every NVML since 2013 has"));
  }
  if (const Return result = f.init(); result != kSuccess) {
    return base::fail(base::unfit_error(
        name, fmt::format("NVML cannot be initialised: {}", library.error_text(result)),
        init_hint(result)));
  }
  library.initialised_ = true;
  return library;
}

std::string NvmlLibrary::error_text(Return result) const {
  const char* text = functions_.error_string == nullptr ? nullptr : functions_.error_string(result);
  return text == nullptr ? fmt::format("error {}", result) : fmt::format("{} ({})", text, result);
}

}  // namespace assay::machine::nvml
