// Actions that print the program's memory queries.
#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

int info(State& state, const Action& action) {
  std::size_t left = 0;
  std::size_t total = 0;
  const int result = state.call("cuMemGetInfo_v2", &left, &total);
  print(action, "free", left);
  print(action, "total", total);
  print(action, "used", total - left);
  return result;
}

int total_of(State& state, const Action& action) {
  std::size_t bytes = 0;
  const int result = state.call("cuDeviceTotalMem_v2", &bytes, static_cast<int>(action.number(0)));
  print(action, "total", bytes);
  return result;
}

// Found as ctypes does.
int nvml(const Action& action) {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return -1;
  void* device = nullptr;
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  reinterpret_cast<int (*)()>(find("nvmlInit_v2"))();
  reinterpret_cast<int (*)(unsigned, void**)>(find("nvmlDeviceGetHandleByIndex_v2"))(
      static_cast<unsigned>(action.number(0)), &device);
  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } second{40U | (2U << 24U), 0, 0, 0, 0};
  unsigned long long first[3] = {};
  using Get = int(void*, void*);
  if (action.what == "nvml2") {
    const int result = reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo_v2"))(device, &second);
    print(action, "version", second.version);
    print(action, "total", second.total);
    print(action, "free", second.free);
    print(action, "used", second.used);
    return result;
  }
  const int result = reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo"))(device, first);
  print(action, "total", first[0]);
  print(action, "free", first[1]);
  print(action, "used", first[2]);
  return result;
}

// Bytes in use of the fake driver.
int real_use(State& state, const Action& action) {
  auto* used = reinterpret_cast<unsigned long (*)(int)>(::dlsym(state.driver, "fakecuda_used"));
  if (used == nullptr) return -1;
  print(action, "used", used(static_cast<int>(action.number(0))));
  return 0;
}

}  // namespace

Actions query_actions(State& state) {
  return {
      {"info", [&](const Action& action) { return info(state, action); }},
      {"infonull",
       [&](const Action&) {
         return state.call("cuMemGetInfo_v2", static_cast<std::size_t*>(nullptr),
                           static_cast<std::size_t*>(nullptr));
       }},
      {"total", [&](const Action& action) { return total_of(state, action); }},
      {"nvml", nvml},
      {"nvml2", nvml},
      {"real", [&](const Action& action) { return real_use(state, action); }},
  };
}

}  // namespace memory
