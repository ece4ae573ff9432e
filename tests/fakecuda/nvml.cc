// A libnvidia-ml.so.1 without GPUs: the devices and the memory of the fake driver, from the same
// environment (driver.h). FAKECUDA_PID_SHIFT=N reports process ids shifted by N, as in a container;
// FAKECUDA_NVML_MS=N delays the list of processes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory_state.h"

namespace {

constexpr int kInvalid = 2;
constexpr int kNotFound = 6;
constexpr std::uintptr_t kHandles = 0x100;

using fake::setting;

int index_of(const void* device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device) - kHandles);
}

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct Memory2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemory2 = sizeof(Memory2) | (2U << 24U);
struct Process {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used;
  unsigned instance, compute_instance;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int) {
  return "fake";
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.0.fake");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(setting("FAKECUDA_DEVICES", 1));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= setting("FAKECUDA_DEVICES", 1)) return kInvalid;
  *device = reinterpret_cast<void*>(kHandles + index);
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  const bool mig = setting("FAKECUDA_MIG", 0) != 0;
  std::snprintf(
      text, length, "%s%02x",
      mig ? "MIG-b0b0b0b0-b0b0-b0b0-b0b0-b0b0b0b0b0" : "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0",
      static_cast<unsigned>(index_of(device)));
  return 0;
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(index_of(device));
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* text, void** device) {
  for (unsigned i = 0; i < setting("FAKECUDA_DEVICES", 1); ++i) {
    char uuid[64];
    nvmlDeviceGetUUID(reinterpret_cast<void*>(kHandles + i), uuid, sizeof uuid);
    if (std::strcmp(uuid, text) != 0) continue;
    *device = reinterpret_cast<void*>(kHandles + i);
    return 0;
  }
  return kNotFound;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = setting("FAKECUDA_MEMORY", std::uint64_t{1} << 30U);
  memory->used = fake::memory_state().used[index_of(device)].load();
  memory->free = memory->total - memory->used;
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void* device, Memory2* memory) {
  if (memory->version != kMemory2) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  Memory simple{};
  nvmlDeviceGetMemoryInfo(device, &simple);
  memory->total = simple.total;
  memory->reserved = 1000;
  memory->used = simple.used;
  memory->free = simple.free - 1000;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* number, Process* list) {
  fake::sweep();
  ::usleep(static_cast<useconds_t>(1000 * setting("FAKECUDA_NVML_MS", 0)));
  unsigned found = 0;
  const auto shift = static_cast<unsigned>(setting("FAKECUDA_PID_SHIFT", 0));
  for (const fake::MemoryState::Process& process : fake::memory_state().processes) {
    const std::uint64_t used = process.used[index_of(device)].load();
    if (process.pid.load() <= 0 || used == 0) continue;
    if (found < *number) {
      list[found] = {static_cast<unsigned>(process.pid.load()) + shift, used, ~0U, ~0U};
    }
    ++found;
  }
  const bool fits = found <= *number;
  *number = found;
  return fits ? 0 : 7;  // NVML_ERROR_INSUFFICIENT_SIZE
}
}
