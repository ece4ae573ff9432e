// Words that tell what the program is told of memory.
#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

int info(State& state, const Word& word) {
  std::size_t left = 0;
  std::size_t total = 0;
  const int result = state.call("cuMemGetInfo_v2", &left, &total);
  tell(word, "free", left);
  tell(word, "total", total);
  tell(word, "used", total - left);
  return result;
}

int total_of(State& state, const Word& word) {
  std::size_t bytes = 0;
  const int result = state.call("cuDeviceTotalMem_v2", &bytes, static_cast<int>(word.number(0)));
  tell(word, "total", bytes);
  return result;
}

// As ctypes does it.
int nvml(const Word& word) {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return -1;
  void* device = nullptr;
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  reinterpret_cast<int (*)()>(find("nvmlInit_v2"))();
  reinterpret_cast<int (*)(unsigned, void**)>(find("nvmlDeviceGetHandleByIndex_v2"))(
      static_cast<unsigned>(word.number(0)), &device);
  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } second{40U | (2U << 24U), 0, 0, 0, 0};
  unsigned long long first[3] = {};
  using Get = int(void*, void*);
  if (word.what == "nvml2") {
    const int result = reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo_v2"))(device, &second);
    tell(word, "version", second.version);
    tell(word, "total", second.total);
    tell(word, "free", second.free);
    tell(word, "used", second.used);
    return result;
  }
  const int result = reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo"))(device, first);
  tell(word, "total", first[0]);
  tell(word, "free", first[1]);
  tell(word, "used", first[2]);
  return result;
}

// What the fake driver has given out.
int real_use(State& state, const Word& word) {
  auto* used = reinterpret_cast<unsigned long (*)(int)>(::dlsym(state.driver, "fakecuda_used"));
  if (used == nullptr) return -1;
  tell(word, "used", used(static_cast<int>(word.number(0))));
  return 0;
}

}  // namespace

Words told_words(State& state) {
  return {
      {"info", [&](const Word& word) { return info(state, word); }},
      {"infonull",
       [&](const Word&) {
         return state.call("cuMemGetInfo_v2", static_cast<std::size_t*>(nullptr),
                           static_cast<std::size_t*>(nullptr));
       }},
      {"total", [&](const Word& word) { return total_of(state, word); }},
      {"nvml", nvml},
      {"nvml2", nvml},
      {"real", [&](const Word& word) { return real_use(state, word); }},
  };
}

}  // namespace memory
