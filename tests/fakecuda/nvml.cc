// A libnvidia-ml.so.1 without GPUs: the devices and the memory that the fake driver has, by the
// same environment (see driver.cc).
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kInvalid = 2;
constexpr std::uintptr_t kHandles = 0x100;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t used_bytes(std::size_t device) {
  const char* state = std::getenv("FAKECUDA_STATE");
  if (state == nullptr) return 0;
  const int file = ::open(state, O_RDONLY | O_CLOEXEC);
  std::uint64_t used = 0;
  if (file < 0) return 0;
  const auto at = static_cast<off_t>(device * sizeof used);
  if (::pread(file, &used, sizeof used, at) != static_cast<ssize_t>(sizeof used)) used = 0;
  ::close(file);
  return used;
}

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
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
  const auto index = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - kHandles);
  std::snprintf(text, length, "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0%02x", index);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = setting("FAKECUDA_MEMORY", std::uint64_t{1} << 30U);
  memory->used = used_bytes(reinterpret_cast<std::uintptr_t>(device) - kHandles);
  memory->free = memory->total - memory->used;
  return 0;
}
}
