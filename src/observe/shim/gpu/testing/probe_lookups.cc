// Lookups by every method that programs use, compared with the driver's own results.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "observe/shim/gpu/testing/probe.h"

// Programs that run with and without a driver declare its functions weak, and get the wrappers.
extern "C" {
__attribute__((weak)) int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, void*, void**, void**);
__attribute__((weak)) int cuMemAlloc_v2(std::uint64_t*, std::size_t);
__attribute__((weak)) int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);
}

namespace probe {
namespace {

// Whether a result is the driver's own function or its wrapper.
enum class Answer { kDrivers, kWrapper, kWrong };
Answer judge(void* got, void* expected) {
  if (got == expected) return Answer::kDrivers;
  auto* name_of = symbol<const char*(const void*)>("fakecuda_symbol");
  Dl_info info{};
  if (got == nullptr || expected == nullptr || ::dladdr(got, &info) == 0 ||
      info.dli_sname == nullptr) {
    return Answer::kWrong;
  }
  const bool ours = std::strstr(info.dli_fname, "libassay-gpu") != nullptr;
  return ours && std::strcmp(info.dli_sname, name_of(expected)) == 0 ? Answer::kWrapper
                                                                     : Answer::kWrong;
}

struct Tally {
  unsigned long lookups = 0, wrapped = 0, wrong = 0, per_thread = 0;
  void add(Answer answer, const std::string& name) {
    ++lookups;
    if (answer == Answer::kWrapper) ++wrapped;
    if (answer != Answer::kWrong) return;
    ++wrong;
    std::fprintf(stderr, "wrong: %s\n", name.c_str());
  }
  void print() const {
    probe::print("lookups", lookups);
    probe::print("wrapped", wrapped);
    probe::print("wrong", wrong);
    probe::print("per_thread", per_thread);
  }
};

}  // namespace

// lookups FILE v1|v2 dlsym|dlvsym: all lookups of a CUDA runtime. v1 has no status.
int lookups(const char* file, const std::string& form, const std::string& loader) {
  open_driver();
  const char* name_of_get = form == "v1" ? "cuGetProcAddress" : "cuGetProcAddress_v2";
  void* get =
      loader == "dlvsym" ? ::dlvsym(driver, name_of_get, "FAKE_1") : ::dlsym(driver, name_of_get);
  auto* function = symbol<void*(const char*, int, int)>("fakecuda_function");
  Tally tally;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::string name;
    int version = 0;
    unsigned flags = 0;
    const std::size_t at = line.find("ver=");
    name = at == 0 ? "" : line.substr(0, at - 1);
    if (std::sscanf(line.c_str() + at, "ver=%d flags=%u", &version, &flags) != 2) continue;
    void* got = nullptr;
    int status = -1;
    const int result =
        form == "v1"
            ? reinterpret_cast<GetProcAddress*>(get)(name.c_str(), &got, version, flags)
            : reinterpret_cast<GetProcAddress2*>(get)(name.c_str(), &got, version, flags, &status);
    void* expected = function(name.c_str(), version, flags == 2 ? 1 : 0);
    Answer answer = judge(got, expected);
    if ((result == 0) != (expected != nullptr)) answer = Answer::kWrong;
    if (form == "v2" && (status == 0) != (expected != nullptr)) answer = Answer::kWrong;
    tally.add(answer, line);
    tally.per_thread += flags == 2 ? 1 : 0;
  }
  tally.print();
  return 0;
}

// symbols FILE dlsym|dlvsym: every symbol of the driver by its own name.
int symbols(const char* file, const std::string& loader) {
  open_driver();
  auto* function = symbol<void*(const char*, int, int)>("fakecuda_function");
  Tally tally;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    char name[128];
    char elf[128];
    char per_thread[16];
    int version = 0;
    const std::size_t at = line.find('(');
    if (at == std::string::npos || line[0] == '/' ||
        std::sscanf(line.c_str() + at, "(%127[^,], %d, %15[^,], %127[^)])", name, &version,
                    per_thread, elf) != 4) {
      continue;
    }
    void* got = loader == "dlvsym" ? ::dlvsym(driver, elf, "FAKE_1") : ::dlsym(driver, elf);
    tally.add(judge(got, function(name, version, std::strcmp(per_thread, "true") == 0 ? 1 : 0)),
              elf);
  }
  tally.print();
  return 0;
}

// everything FILE: every name with versions around each of its versions, and all flags.
int everything(const char* file) {
  open_driver();
  auto* get = symbol<GetProcAddress2>("cuGetProcAddress_v2");
  auto* function = symbol<void*(const char*, int, int)>("fakecuda_function");
  Tally tally;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    char name[128];
    int of = 0;
    const std::size_t at = line.find('(');
    if (at == std::string::npos || line[0] == '/' ||
        std::sscanf(line.c_str() + at, "(%127[^,], %d", name, &of) != 2) {
      continue;
    }
    for (const int version : {0, of - 1, of, of + 1, 13000, 99000}) {
      for (const std::uint64_t flags : {0U, 1U, 2U}) {
        void* got = nullptr;
        int status = -1;
        get(name, &got, version, flags, &status);
        tally.add(judge(got, function(name, version, flags == 2 ? 1 : 0)), line);
      }
    }
  }
  tally.print();
  return 0;
}

int no_driver() {
  print("default", ::dlsym(RTLD_DEFAULT, "cuLaunchKernel") == nullptr ? 0 : 1);
  print("error", ::dlerror() == nullptr ? 0 : 1);
  print("nccl", ::dlsym(RTLD_DEFAULT, "ncclAllReduce") == nullptr ? 0 : 1);
  const bool blas = ::dlsym(RTLD_DEFAULT, "cublasGemmEx") != nullptr ||
                    ::dlvsym(RTLD_DEFAULT, "cublasGemmEx", "libcublas.so.13") != nullptr;
  print("blas", blas ? 1 : 0);
  ::dlerror();
  ::dlsym(RTLD_DEFAULT, "malloc");
  print("error_after_success", ::dlerror() == nullptr ? 0 : 1);
  return 0;
}

// Called without a driver they must return an error, not crash, and work once there is one.
int weak_symbols() {
  if (cuLaunchKernel == nullptr || cuMemAlloc_v2 == nullptr || ncclAllReduce == nullptr) return 3;
  const auto once = [] {
    return static_cast<unsigned long>(
        cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  };
  std::uint64_t address = 0;
  print("launch", once());
  print("allocate", static_cast<unsigned long>(cuMemAlloc_v2(&address, 10)));
  print("reduce",
        static_cast<unsigned long>(ncclAllReduce(nullptr, nullptr, 1, 7, 0, nullptr, nullptr)));
  open_driver();
  print("launch_later", once());
  print("allocate_later", static_cast<unsigned long>(cuMemAlloc_v2(&address, 10)));
  return 0;
}

int other_names() {
  open_driver();
  ::dlerror();
  print("unknown", ::dlsym(driver, "cuLaunchTheMoon") == nullptr ? 0 : 1);
  print("error", ::dlerror() == nullptr ? 0 : 1);
  print("launch", ::dlsym(driver, "cuLaunchKernel") == nullptr ? 0 : 1);
  print("error_after_success", ::dlerror() == nullptr ? 0 : 1);
  void* found = reinterpret_cast<void*>(1);
  int status = -1;
  auto* get = symbol<GetProcAddress2>("cuGetProcAddress_v2");
  print("result", static_cast<unsigned long>(get("cuLaunchTheMoon", &found, 13000, 0, &status)));
  print("status", static_cast<unsigned long>(status));
  print("null_name", static_cast<unsigned long>(get(nullptr, &found, 13000, 0, &status)));
  print("null_out", static_cast<unsigned long>(get("cuInit", nullptr, 13000, 0, &status)));
  print("bad_flags", static_cast<unsigned long>(get("cuInit", &found, 13000, 77, &status)));
  return 0;
}

}  // namespace probe
