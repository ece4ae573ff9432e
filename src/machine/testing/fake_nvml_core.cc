// The four functions without which NVML cannot be used at all. See fake_nvml_core.h.
#include "machine/testing/fake_nvml_core.h"

#include <cstdint>
#include <cstdlib>

using namespace assay::machine::nvml;

namespace {
int g_open_sessions = 0;
}  // namespace

namespace assay::machine::nvml {

bool scenario_is(std::string_view name) {
  const char* scenario = std::getenv("FAKE_NVML");
  return scenario != nullptr && name == scenario;
}

unsigned index_of(Device device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1);
}

}  // namespace assay::machine::nvml

extern "C" {

Return nvmlInit_v2() {
  if (scenario_is("driver_not_loaded")) return kDriverNotLoaded;
  if (scenario_is("mismatch")) return kVersionMismatch;
  ++g_open_sessions;
  return kSuccess;
}

Return nvmlShutdown() {
  --g_open_sessions;
  return kSuccess;
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (scenario_is("no_count")) return kUnknownError;
  *count = scenario_is("none") ? 0 : scenario_is("garbage") ? 4'000'000'000U : kFakeGpus;
  return kSuccess;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (scenario_is("lost") && index == 3) return kGpuIsLost;
  *device = reinterpret_cast<Device>(static_cast<std::uintptr_t>(index) + 1);
  return kSuccess;
}

int fake_nvml_open_sessions() {
  return g_open_sessions;
}

}  // extern "C"
