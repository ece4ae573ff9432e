// A CUDA program that executes the actions given as arguments, in order:
//   gpu_script launch 100 alloc 1048576 wait FIFO launch 50 exit 3
// `wait` prints "ready" and reads a line from the FIFO. A failed allocation is printed.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

void* driver = nullptr;

template <class F>
F* function(const char* name) {
  return reinterpret_cast<F*>(::dlsym(driver, name));
}

using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);

}  // namespace

int main(int count, char** arguments) {
  driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 1;
  function<int(unsigned)>("cuInit")(0);
  void* context = nullptr;
  if (auto* retain = function<int(void**, int)>("cuDevicePrimaryCtxRetain")) retain(&context, 0);
  if (auto* current = function<int(void*)>("cuCtxSetCurrent")) current(context);
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string what = arguments[i];
    const long number = std::strtol(arguments[i + 1], nullptr, 10);
    if (what == "launch") {
      auto* launch = function<Launch>("cuLaunchKernel");
      for (long n = 0; n < number; ++n) {
        launch(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
      }
    } else if (what == "alloc") {
      unsigned long long address = 0;
      const int result = function<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(
          &address, static_cast<std::size_t>(number));
      if (result != 0) std::printf("refused %ld: %d\n", number, result);
    } else if (what == "wait") {
      std::printf("ready\n");
      std::fflush(stdout);
      std::string line;
      std::getline(std::ifstream(arguments[i + 1]) >> std::ws, line);
    } else if (what == "exit") {
      return static_cast<int>(number);
    }
  }
  return 0;
}
