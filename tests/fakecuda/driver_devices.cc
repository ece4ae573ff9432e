// Devices, contexts and modules.
#include <cstring>

#include "driver.h"

using namespace fakecuda;

namespace {

void set_context(std::intptr_t context) {
  current_context = context;
  current_device = static_cast<int>((context - 0x1000) & 0xFFFF);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  count(k_cuInit);
  driver();
  return kOk;
}
int cuDriverGetVersion(int* version) {
  count(k_cuDriverGetVersion);
  *version = 13000;
  return kOk;
}
int cuDeviceGetCount(int* devices) {
  count(k_cuDeviceGetCount);
  *devices = driver().devices;
  return kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  count(k_cuDeviceGet);
  if (ordinal < 0 || ordinal >= driver().devices) return 101;
  *device = ordinal;
  return kOk;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) {
  count(k_cuDeviceGetUuid);
  std::memset(uuid, 0xA0, 16);
  uuid[15] = static_cast<unsigned char>(driver().mig ? 0 : physical(device));
  return kOk;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  count(k_cuDeviceGetUuid_v2);
  std::memset(uuid, driver().mig ? 0xB0 : 0xA0, 16);
  uuid[15] = static_cast<unsigned char>(physical(device));
  return kOk;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  count(k_cuDeviceTotalMem_v2);
  if (bytes == nullptr) return kInvalidValue;
  *bytes = fake::Memory::the().total();
  return kOk;
}
int cuDeviceGetName(char* name, int length, int) {
  count(k_cuDeviceGetName);
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return kOk;
}
int cuCtxCreate_v2(void** context, unsigned, int device) {
  count(k_cuCtxCreate_v2);
  set_context(fake::Memory::the().new_context(device, physical(device)));
  *context = reinterpret_cast<void*>(current_context);
  return kOk;
}
int cuCtxCreate_v4(void** context, void*, unsigned, int device) {
  count(k_cuCtxCreate_v4);
  set_context(fake::Memory::the().new_context(device, physical(device)));
  *context = reinterpret_cast<void*>(current_context);
  return kOk;
}
int cuCtxDestroy_v2(void* context) {
  count(k_cuCtxDestroy_v2);
  const auto number = reinterpret_cast<std::intptr_t>(context);
  fake::Memory::the().destroy(number, physical(static_cast<int>((number - 0x1000) & 0xFFFF)));
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  count(k_cuDevicePrimaryCtxRetain);
  fake::Memory::the().retain_primary(physical(device));
  *context = reinterpret_cast<void*>(0x1000L + device);
  return kOk;
}
int cuDevicePrimaryCtxRelease(int device) {
  count(k_cuDevicePrimaryCtxRelease);
  return fake::Memory::the().release_primary(physical(device), 0x1000L + device);
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  count(k_cuDevicePrimaryCtxRelease_v2);
  return fake::Memory::the().release_primary(physical(device), 0x1000L + device);
}
int cuDevicePrimaryCtxReset_v2(int device) {
  count(k_cuDevicePrimaryCtxReset_v2);
  fake::Memory::the().reset_primary(physical(device), 0x1000L + device);
  return kOk;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  count(k_cuDevicePrimaryCtxGetState);
  *flags = 0;
  *active = fake::Memory::the().primary_is_active(physical(device)) ? 1 : 0;
  return kOk;
}
int cuCtxSetCurrent(void* context) {
  count(k_cuCtxSetCurrent);
  set_context(reinterpret_cast<std::intptr_t>(context));
  return kOk;
}
int cuCtxGetCurrent(void** context) {
  count(k_cuCtxGetCurrent);
  *context = reinterpret_cast<void*>(current_context);
  return kOk;
}
int cuCtxGetDevice(int* device) {
  count(k_cuCtxGetDevice);
  *device = current_device;
  return kOk;
}
#define MODULE(symbol)                                                \
  int symbol() {                                                      \
    count(k_##symbol);                                                \
    return fake::Memory::the().load_module(physical(current_device)); \
  }
MODULE(cuModuleLoadData)
MODULE(cuLibraryLoadData)

int cuCtxGetId(void*, unsigned long long* id) {
  count(k_cuCtxGetId);
  *id = static_cast<unsigned long long>(current_device) + 1;
  return kOk;
}
}
