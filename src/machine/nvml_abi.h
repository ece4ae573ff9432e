// The parts of NVIDIA's management library (NVML) that are used, declared here so that no toolkit
// is needed to build. Layouts and numbers follow NVML's published C interface, which is stable:
// changes come as new versioned functions. Names are not NVIDIA's; `nvml…` functions are looked up
// at run time (nvml_library.cc) and faked in testing/.
#pragma once

namespace assay::machine::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kUnknownError = 999;

using Device = struct DeviceTag*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];  // "00000000:18:00.0"
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Memory) == 24);

struct FieldValue {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;
  long long latency_us;
  int value_type;
  Return result;
  union {
    unsigned u32;
    unsigned long long u64;
    double f64;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

inline constexpr unsigned kFieldNvlinkSpeedMbps = 90;  // MB/s of each active link, one direction
inline constexpr int kValueTypeUnsigned = 1;

inline constexpr int kClockSm = 1;  // nvmlClockType_t

// nvmlClocksThrottleReasons
inline constexpr unsigned long long kLimitHardware = 0x8;
inline constexpr unsigned long long kLimitHotSoftware = 0x20;
inline constexpr unsigned long long kLimitHotHardware = 0x40;
inline constexpr unsigned long long kLimitPowerBrake = 0x80;

inline constexpr int kPolicyThermal = 1;  // nvmlPerfPolicyType_t
struct ViolationTime {
  unsigned long long until_us;
  unsigned long long violated_ns;
};
static_assert(sizeof(ViolationTime) == 16);

struct Utilization {
  unsigned gpu;  // percent of the time in which some kernel ran
  unsigned memory;
};

inline constexpr int kPcieSent = 0;  // nvmlPcieUtilCounter_t, in KB/s
inline constexpr int kPcieReceived = 1;

// GPU performance monitoring, since Hopper: what happened between two samples.
using GpmSample = struct GpmSampleTag*;
struct GpmSupport {
  unsigned version;
  unsigned supported;
};
struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  const char* names[3];
};
static_assert(sizeof(GpmMetric) == 40);
inline constexpr unsigned kGpmVersion = 1;
// The library's own array has grown from 98 entries to several hundred under one version number; it
// touches only those requested.
inline constexpr unsigned kGpmMetrics = 512;
struct GpmMetrics {
  unsigned version;
  unsigned count;
  GpmSample before;
  GpmSample after;
  GpmMetric metrics[kGpmMetrics];
};
static_assert(sizeof(GpmMetrics) == 24 + 40 * kGpmMetrics);
inline constexpr unsigned kGpmSm = 2;  // percent, as the next three
inline constexpr unsigned kGpmOccupancy = 3;
inline constexpr unsigned kGpmTensor = 5;
inline constexpr unsigned kGpmDram = 10;
inline constexpr unsigned kGpmPcieSent = 20;  // MiB/s, as the next three
inline constexpr unsigned kGpmPcieReceived = 21;
inline constexpr unsigned kGpmNvlinkReceived = 60;
inline constexpr unsigned kGpmNvlinkSent = 61;

inline constexpr unsigned kMigEnabled = 1;

inline constexpr unsigned kMaxNvlinks = 36;
inline constexpr int kRemoteGpu = 0;
inline constexpr int kRemoteSwitch = 2;

// nvmlGpuTopologyLevel_t
inline constexpr int kTopologyInternal = 0;
inline constexpr int kTopologySingle = 10;
inline constexpr int kTopologyMultiple = 20;
inline constexpr int kTopologyHostBridge = 30;
inline constexpr int kTopologyNode = 40;
inline constexpr int kTopologySystem = 50;

}  // namespace assay::machine::nvml
