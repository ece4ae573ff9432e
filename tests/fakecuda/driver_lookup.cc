// cuGetProcAddress, and the queries for tests.
#include <cstring>

#include "clock.h"
#include "driver.h"
#include "fakecuda.h"

using namespace fakecuda;

namespace {

int look_up(const char* name, void** function, int version, std::uint64_t flags, int* status) {
  if (name == nullptr || function == nullptr || flags > 2) return kInvalidValue;
  const Entry* entry = find(name, version, flags == 2);
  *function = entry == nullptr ? nullptr : entry->function;
  const bool known = find(name, 1 << 30U, false) != nullptr;
  if (status != nullptr) *status = entry != nullptr ? 0 : (known ? 2 : 1);
  return entry == nullptr ? kNotFound : kOk;
}

}  // namespace

extern "C" {

int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  count(k_cuGetProcAddress);
  return look_up(name, function, version, flags, nullptr);
}
int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                        int* status) {
  count(k_cuGetProcAddress_v2);
  return look_up(name, function, version, flags, status);
}

unsigned long fakecuda_calls(const char* symbol) {
  for (int i = 0; i < kSymbols; ++i) {
    if (std::strcmp(kEntries[i].symbol, symbol) == 0) return called[i].load();
  }
  return ~0UL;
}
#ifdef FAKECUDA_BARE
void fakecuda_does_nothing() {}  // identifies the fake driver
#endif
unsigned long fakecuda_busy_ns() {
  return fakecuda::busy_ns();
}
unsigned long fakecuda_used(int device) {
  return fake::Memory::used(physical(device));
}
unsigned long fakecuda_nodes() {
  return nodes_run.load();
}
void* fakecuda_function(const char* name, int version, int per_thread) {
  const Entry* entry = find(name, version, per_thread != 0);
  return entry == nullptr ? nullptr : entry->function;
}
const char* fakecuda_symbol(const void* function) {
  for (const Entry& entry : kEntries) {
    if (entry.function == function) return entry.symbol;
  }
  return nullptr;
}

}  // extern "C"
