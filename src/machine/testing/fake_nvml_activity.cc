// The fake NVML's functions about its GPUs' activity. See fake_nvml_core.h.
#include <cstdint>
#include <cstring>

#include "machine/testing/fake_nvml_core.h"

using namespace assay::machine::nvml;

namespace {

// A sample records its sequence number and its device. "Old" cards have none.
struct Sample {
  unsigned device;
  unsigned number;
};
int samples_alive = 0;
unsigned samples_taken = 0;

Return take(unsigned device, GpmSample handle) {
  if (scenario_is("errors")) return kUnknownError;
  *reinterpret_cast<Sample*>(handle) = {device, ++samples_taken};
  return kSuccess;
}

}  // namespace

extern "C" {

int fake_nvml_samples_alive() {
  return samples_alive;
}

Return nvmlDeviceGetUtilizationRates(Device device, Utilization* use) {
  if (scenario_is("errors")) return kUnknownError;
  use->gpu = scenario_is("garbage") ? 4'000'000'000U : 50 + index_of(device) % 50;
  return kSuccess;
}
Return nvmlDeviceGetPcieThroughput(Device, int counter, unsigned* kilobytes) {
  if (scenario_is("errors")) return kUnknownError;
  *kilobytes = scenario_is("garbage") ? 4'000'000'000U : counter == kPcieSent ? 1000 : 2000;
  return kSuccess;
}

Return nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* later) {
  if (!scenario_is("slices") && !scenario_is("garbage")) return kNotSupported;
  *now = *later = scenario_is("garbage") || index_of(device) == 1 ? kMigEnabled : 0;
  return kSuccess;
}
Return nvmlDeviceGetMaxMigDeviceCount(Device, unsigned* count) {
  *count = scenario_is("garbage") ? 4'000'000'000U : 7;
  return kSuccess;
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device, unsigned index, Device* slice) {
  if (index != 0 && index != 2) return scenario_is("garbage") ? kSuccess : kInvalidArgument;
  *slice = reinterpret_cast<Device>(std::uintptr_t{kFirstSlice} + 1 + index);
  return kSuccess;
}
Return nvmlDeviceGetGpuInstanceId(Device slice, unsigned* id) {
  *id = index_of(slice) - kFirstSlice + 3;
  return kSuccess;
}
Return nvmlDeviceGetComputeInstanceId(Device, unsigned* id) {
  *id = 0;
  return kSuccess;
}

Return nvmlGpmQueryDeviceSupport(Device, GpmSupport* support) {
  if (support->version != kGpmVersion) return kInvalidArgument;
  support->supported = scenario_is("pairs") ? 0 : 1;
  return kSuccess;
}
Return nvmlGpmSampleAlloc(GpmSample* sample) {
  *sample = reinterpret_cast<GpmSample>(new Sample{});
  ++samples_alive;
  return kSuccess;
}
Return nvmlGpmSampleFree(GpmSample sample) {
  delete reinterpret_cast<Sample*>(sample);
  --samples_alive;
  return kSuccess;
}
Return nvmlGpmSampleGet(Device device, GpmSample sample) {
  return take(index_of(device), sample);
}
Return nvmlGpmMigSampleGet(Device card, unsigned instance, GpmSample sample) {
  return take(1000 * index_of(card) + instance, sample);
}
Return nvmlGpmMetricsGet(GpmMetrics* asked) {
  const auto* before = reinterpret_cast<const Sample*>(asked->before);
  const auto* after = reinterpret_cast<const Sample*>(asked->after);
  // As the real one: samples of one device, the older first.
  if (asked->version != kGpmVersion || before->device != after->device ||
      before->number >= after->number || before->number == 0) {
    return kInvalidArgument;
  }
  for (unsigned i = 0; i < asked->count; ++i) {
    GpmMetric& metric = asked->metrics[i];
    metric.result = metric.id == kGpmNvlinkSent ? kNotSupported : kSuccess;
    metric.value = metric.id + after->device / 1000.0;
    if (scenario_is("garbage")) std::memset(&metric.value, 0xff, sizeof metric.value);
  }
  return kSuccess;
}

}  // extern "C"
