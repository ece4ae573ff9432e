// The fake NVML's functions about its GPUs. See fake_nvml_core.h.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "machine/testing/fake_nvml_core.h"

using namespace assay::machine::nvml;

namespace {

// Bus numbers of the GPUs of an 8-GPU server; FakeTree::add_hgx() puts them on the bus.
constexpr unsigned kBus[kFakeGpus] = {0x18, 0x2a, 0x3a, 0x5d, 0x9a, 0xab, 0xba, 0xdb};

Return write_text(char* text, unsigned size, const char* value) {
  if (scenario_is("garbage")) {
    std::memset(text, 0xff, size);  // not even terminated
    return kSuccess;
  }
  if (scenario_is("errors")) return kUnknownError;
  std::snprintf(text, size, "%s", value);
  return kSuccess;
}

template <class T>
Return write_number(T* number, T value) {
  if (scenario_is("errors")) return kUnknownError;
  *number = value;
  if (scenario_is("garbage")) std::memset(number, 0xff, sizeof *number);
  return kSuccess;
}

Return write_pci(PciInfo* info, unsigned bus) {
  if (scenario_is("errors")) return kUnknownError;
  std::memset(info, scenario_is("garbage") ? 0xff : 0, sizeof *info);
  if (scenario_is("garbage")) return kSuccess;
  info->bus = bus;
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus);
  return kSuccess;
}

}  // namespace

extern "C" {

const char* nvmlErrorString(Return result) {
  switch (result) {
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kVersionMismatch:
      return "Driver/library version mismatch";
    case kGpuIsLost:
      return "GPU is lost";
    default:
      return scenario_is("garbage") ? nullptr : "Unknown Error";
  }
}

Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return write_text(text, size, "580.65.06");
}
Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return write_number(version, 13000);
}

Return nvmlDeviceGetName(Device, char* text, unsigned size) {
  return write_text(text, size, scenario_is("pairs") ? "NVIDIA H100 NVL" : "NVIDIA H200");
}
Return nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  char uuid[64];
  std::snprintf(uuid, sizeof uuid, "%s-00000000-0000-0000-0000-%012u",
                index_of(device) >= kFirstSlice ? "MIG" : "GPU", index_of(device));
  return write_text(text, size, uuid);
}
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  return write_pci(info, kBus[index_of(device) % kFakeGpus]);
}
Return nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  return write_number(memory, Memory{.total = 150'754'820'096ULL, .free = 0, .used = 0});
}
Return nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* limit) {
  return scenario_is("pairs") ? kNotSupported : write_number(limit, 700'000U);
}
Return nvmlDeviceGetPowerManagementLimit(Device, unsigned* limit) {
  return write_number(limit, 400'000U);
}
Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  if (scenario_is("pairs")) return kNotSupported;
  static std::atomic<unsigned long long> asked = 0;
  return write_number(millijoules, 1'000'000ULL * (index_of(device) + 1) + 50'000 * ++asked);
}
Return nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return write_number(milliwatts, 400'000U + 1000 * index_of(device));
}
Return nvmlDeviceGetClockInfo(Device, int type, unsigned* megahertz) {
  return type == kClockSm ? write_number(megahertz, 1980U) : kNotSupported;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return write_number(reasons, index_of(device) == 5 ? 0x41ULL : 0x4ULL);
}
Return nvmlDeviceGetViolationStatus(Device device, int policy, ViolationTime* time) {
  if (scenario_is("pairs") || policy != kPolicyThermal) return kNotSupported;
  static std::atomic<unsigned long long> asked = 0;
  // The sixth is too hot all the time.
  return write_number(&time->violated_ns, index_of(device) == 5 ? 50'000'000 * ++asked : 0ULL);
}
Return nvmlDeviceGetCurrPcieLinkGeneration(Device, unsigned* gen) {
  return write_number(gen, 1U);
}
Return nvmlDeviceGetCurrPcieLinkWidth(Device, unsigned* width) {
  return write_number(width, 16U);
}
Return nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned* gen) {
  return write_number(gen, 5U);
}
Return nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* width) {
  return write_number(width, 16U);
}
Return nvmlDeviceGetNumGpuCores(Device, unsigned* cores) {
  return write_number(cores, 16896U);
}
Return nvmlDeviceGetCudaComputeCapability(Device, int* major, int* minor) {
  write_number(minor, 0);
  return write_number(major, 9);
}

Return nvmlDeviceGetFieldValues(Device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].value_type = kValueTypeUnsigned;
    values[i].result = values[i].field_id == kFieldNvlinkSpeedMbps
                           ? write_number(&values[i].value.u32, 26'562U)
                           : kNotSupported;
  }
  return kSuccess;
}

Return nvmlDeviceGetNvLinkState(Device, unsigned link, int* active) {
  if (link >= 18 && !scenario_is("garbage")) return kInvalidArgument;
  return write_number(active, link < (scenario_is("pairs") ? 12U : 18U) ? 1 : 0);
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, int* type) {
  if (scenario_is("hidden_switch")) return kNotSupported;
  return write_number(type, scenario_is("pairs") ? kRemoteGpu : kRemoteSwitch);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* info) {
  if (scenario_is("hidden_switch")) return kNotSupported;
  if (scenario_is("pairs")) return write_pci(info, kBus[(index_of(device) ^ 1U) % kFakeGpus]);
  return write_pci(info, 0x05 + link % 4);
}

Return nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, int* level) {
  const bool same_socket = index_of(a) / 4 == index_of(b) / 4;
  return write_number(level, same_socket ? kTopologyNode : kTopologySystem);
}

}  // extern "C"
