// The program that tests run under the library, with the fake driver: `gpu_probe WHAT …`. It finds
// the driver as programs do, uses it, and prints what the driver itself counted, "name number" per
// line; the tests compare that with the region.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/memory_script.h"
#include "observe/shim/gpu/testing/share.h"

// Programs that run with and without a driver declare its functions weak, and find ours.
extern "C" {
__attribute__((weak)) int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, void*, void**, void**);
__attribute__((weak)) int cuMemAlloc_v2(std::uint64_t*, std::size_t);
__attribute__((weak)) int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);
}

namespace {

void* driver = nullptr;

void* open_driver() {
  driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(2);
  }
  return driver;
}

template <typename Signature>
Signature* symbol(const char* name) {
  return reinterpret_cast<Signature*>(::dlsym(driver, name));
}

using GetProcAddress = int(const char*, void**, int, std::uint64_t);
using GetProcAddress2 = int(const char*, void**, int, std::uint64_t, int*);
using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);

// As the CUDA runtime does it.
template <typename Signature>
Signature* entry(const char* name, int version, std::uint64_t flags = 0) {
  auto* get = symbol<GetProcAddress2>("cuGetProcAddress_v2");
  void* found = nullptr;
  int status = -1;
  if (get(name, &found, version, flags, &status) != 0) return nullptr;
  return reinterpret_cast<Signature*>(found);
}

Launch* find_launch() {
  return entry<Launch>("cuLaunchKernel", 4000);
}

void launch(Launch* function, long times) {
  for (long i = 0; i < times; ++i) {
    function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
}

void tell(const char* what, unsigned long number) {
  std::printf("%s %lu\n", what, number);
  std::fflush(stdout);
}

void tell_calls(std::initializer_list<const char*> symbols) {
  auto* calls = symbol<unsigned long(const char*)>("fakecuda_calls");
  for (const char* name : symbols) tell(name, calls(name));
}

// Whether an answer is the driver's own function or the wrapper of exactly that one.
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
    tell("lookups", lookups);
    tell("wrapped", wrapped);
    tell("wrong", wrong);
    tell("per_thread", per_thread);
  }
};

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

// everything FILE: every name with versions around each of its own, and all flags.
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
  tell("default", ::dlsym(RTLD_DEFAULT, "cuLaunchKernel") == nullptr ? 0 : 1);
  tell("error", ::dlerror() == nullptr ? 0 : 1);
  tell("nccl", ::dlsym(RTLD_DEFAULT, "ncclAllReduce") == nullptr ? 0 : 1);
  ::dlerror();
  ::dlsym(RTLD_DEFAULT, "malloc");
  tell("error_after_success", ::dlerror() == nullptr ? 0 : 1);
  return 0;
}

// Called without a driver they must answer, not crash; and work once there is one.
int weak_symbols() {
  if (cuLaunchKernel == nullptr || cuMemAlloc_v2 == nullptr || ncclAllReduce == nullptr) return 3;
  const auto once = [] {
    return static_cast<unsigned long>(
        cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  };
  std::uint64_t address = 0;
  tell("launch", once());
  tell("allocate", static_cast<unsigned long>(cuMemAlloc_v2(&address, 10)));
  tell("reduce",
       static_cast<unsigned long>(ncclAllReduce(nullptr, nullptr, 1, 7, 0, nullptr, nullptr)));
  open_driver();
  tell("launch_later", once());
  tell("allocate_later", static_cast<unsigned long>(cuMemAlloc_v2(&address, 10)));
  return 0;
}

int other_names() {
  open_driver();
  ::dlerror();
  tell("unknown", ::dlsym(driver, "cuLaunchTheMoon") == nullptr ? 0 : 1);
  tell("error", ::dlerror() == nullptr ? 0 : 1);
  tell("launch", ::dlsym(driver, "cuLaunchKernel") == nullptr ? 0 : 1);
  tell("error_after_success", ::dlerror() == nullptr ? 0 : 1);
  void* found = reinterpret_cast<void*>(1);
  int status = -1;
  auto* get = symbol<GetProcAddress2>("cuGetProcAddress_v2");
  tell("result", static_cast<unsigned long>(get("cuLaunchTheMoon", &found, 13000, 0, &status)));
  tell("status", static_cast<unsigned long>(status));
  tell("null_name", static_cast<unsigned long>(get(nullptr, &found, 13000, 0, &status)));
  tell("null_out", static_cast<unsigned long>(get("cuInit", nullptr, 13000, 0, &status)));
  tell("bad_flags", static_cast<unsigned long>(get("cuInit", &found, 13000, 77, &status)));
  return 0;
}

int threads(long count, long launches) {
  open_driver();
  Launch* function = find_launch();
  std::vector<std::thread> running;
  for (long i = 0; i < count; ++i) running.emplace_back([=] { launch(function, launches); });
  for (std::thread& thread : running) thread.join();
  tell_calls({"cuLaunchKernel"});
  return 0;
}

// One after another: blocks must be used again.
int churn(long count) {
  open_driver();
  Launch* function = find_launch();
  for (long i = 0; i < count; ++i) std::thread([=] { launch(function, 3); }).join();
  tell_calls({"cuLaunchKernel"});
  return 0;
}

// A thread's last launches come from a destructor that runs after ours.
int late_thread(long launches) {
  open_driver();
  static Launch* function = find_launch();
  static long times = launches;
  static pthread_key_t key;
  launch(function, 1);  // our key is made before
  ::pthread_key_create(&key, [](void*) { launch(function, times); });
  std::thread([] {
    ::pthread_setspecific(key, &key);
    launch(function, 1);
  }).join();
  tell_calls({"cuLaunchKernel"});
  return 0;
}

int forks(long children, long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, 5);
  for (long i = 0; i < children; ++i) {
    if (::fork() != 0) continue;
    launch(function, launches);
    ::_exit(0);
  }
  launch(function, launches);
  while (::wait(nullptr) > 0) {
  }
  tell_calls({"cuLaunchKernel"});
  return 0;
}

int execs(char** arguments, long left) {
  open_driver();
  launch(find_launch(), 7);
  if (left <= 1) return 0;
  const std::string next = std::to_string(left - 1);
  ::execl("/proc/self/exe", arguments[0], "execs", next.c_str(), nullptr);
  return 1;
}

// Launches until it is killed; says how often, in the file's place, before each.
int until_killed(long launches) {
  open_driver();
  launch(find_launch(), launches);
  ::raise(SIGKILL);
  return 0;
}

int closes_everything(long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, launches);
  for (int i = 3; i < 1024; ++i) ::close(i);
  std::thread([=] { launch(function, launches); }).join();
  tell_calls({"cuLaunchKernel"});
  return 0;
}

// A child whose parent has closed our descriptor, and perhaps been given its number for a file of
// its own: that must stay unlocked.
int closes_and_forks(long launches, const char* file) {
  open_driver();
  Launch* function = find_launch();
  launch(function, launches);
  for (int i = 3; i < 1024; ++i) ::close(i);
  const int own = ::open(file, O_RDWR | O_CREAT, 0600);
  for (int i = 100; own >= 0 && i < 400; ++i) ::dup2(own, i);
  if (::fork() == 0) {
    launch(function, launches);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::_exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ::fcntl(own, F_GETLK, &lock);
  tell("locked", lock.l_type == F_UNLCK ? 0 : 1);
  while (::wait(nullptr) > 0) {
  }
  return 0;
}

int at_exit() {
  open_driver();
  static Launch* function = find_launch();
  launch(function, 1);
  std::atexit([] { launch(function, 9); });
  return 0;
}

int reload(long times) {
  for (long i = 0; i < times; ++i) {
    open_driver();
    launch(find_launch(), 2);
    ::dlclose(driver);
  }
  open_driver();
  tell_calls({"cuLaunchKernel"});
  return 0;
}

int every_kind() {
  open_driver();
  using AnyCall = int();
  for (const char* name :
       {"cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
        "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz", "cuLaunchGrid",
        "cuCtxSynchronize", "cuStreamSynchronize", "cuStreamSynchronize_ptsz", "cuEventSynchronize",
        "cuModuleLoadData", "cuLibraryLoadData"}) {
    symbol<AnyCall>(name)();
  }
  using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
  for (const char* name : {"cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2",
                           "cuMemcpyHtoDAsync_v2_ptsz"}) {
    symbol<Copy>(name)(1, 2, 1000, nullptr);
  }
  symbol<Copy>("cuMemcpyDtoH_v2")(1, 2, 30, nullptr);
  symbol<Copy>("cuMemcpyDtoDAsync_v2_ptsz")(1, 2, 4, nullptr);
  symbol<Copy>("cuMemcpyAsync")(1, 2, 7, nullptr);
  using PeerCopy = int(std::uint64_t, void*, std::uint64_t, void*, std::size_t);
  symbol<PeerCopy>("cuMemcpyPeer")(1, nullptr, 2, nullptr, 11);
  using ArrayCopy = int(void*, std::size_t, const void*, std::size_t);
  symbol<ArrayCopy>("cuMemcpyHtoA_v2")(nullptr, 0, nullptr, 13);
  using Set = int(std::uint64_t, unsigned, std::size_t);
  symbol<Set>("cuMemsetD8_v2")(1, 0, 100);
  symbol<Set>("cuMemsetD16_v2")(1, 0, 100);
  symbol<Set>("cuMemsetD32_v2_ptds")(1, 0, 100);
  using Set2d = int(std::uint64_t, std::size_t, unsigned, std::size_t, std::size_t);
  symbol<Set2d>("cuMemsetD2D32_v2")(1, 64, 0, 10, 3);
  unsigned char copy[200] = {};
  const auto put = [&](std::size_t at, std::size_t value, std::size_t size) {
    std::memcpy(copy + at, &value, size);
  };
  using StructCopy = int(const void*);
  put(16, 1, 4), put(72, 2, 4), put(112, 20, 8), put(120, 5, 8);  // host to device, 20 × 5
  symbol<StructCopy>("cuMemcpy2D_v2")(copy);
  std::memset(copy, 0, sizeof copy);
  put(32, 2, 4), put(120, 2, 4), put(176, 4, 8), put(184, 3, 8), put(192, 2, 8);
  symbol<StructCopy>("cuMemcpy3D_v2_ptds")(copy);
  std::size_t sizes[] = {3, 5, 9};
  using Batch = int(std::uint64_t*, std::uint64_t*, std::size_t*, std::size_t, void*, std::size_t*,
                    std::size_t, void*);
  symbol<Batch>("cuMemcpyBatchAsync_v2")(nullptr, nullptr, sizes, 3, nullptr, nullptr, 0, nullptr);
  return 0;
}

int allocations() {
  open_driver();
  using Alloc = int(std::uint64_t*, std::size_t);
  using AsyncAlloc = int(std::uint64_t*, std::size_t, void*);
  using PoolAlloc = int(std::uint64_t*, std::size_t, void*, void*);
  using Free = int(std::uint64_t);
  using AsyncFree = int(std::uint64_t, void*);
  auto* alloc = entry<Alloc>("cuMemAlloc", 3020);
  auto* free_it = entry<Free>("cuMemFree", 3020);
  std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0;
  alloc(&a, 1000);
  entry<AsyncAlloc>("cuMemAllocAsync", 11020, 2)(&b, 2000, nullptr);
  entry<PoolAlloc>("cuMemAllocFromPoolAsync", 11020)(&c, 4000, nullptr, nullptr);
  int properties[8] = {1, 0, 1, 0};
  symbol<int(std::uint64_t*, std::size_t, const void*, std::uint64_t)>("cuMemCreate")(
      &d, 8000, properties, 0);
  symbol<int(std::uint64_t*, std::size_t, unsigned)>("cuMemAllocManaged")(&e, 16000, 1);
  std::size_t pitch = 0;
  std::uint64_t f = 0;
  symbol<int(std::uint64_t*, std::size_t*, std::size_t, std::size_t, unsigned)>(
      "cuMemAllocPitch_v2")(&f, &pitch, 100, 10, 4);
  struct {
    std::size_t width, height;
    int format;
    unsigned channels;
  } shape{10, 10, 0x20, 4};
  void* array = nullptr;
  symbol<int(void**, const void*)>("cuArrayCreate_v2")(&array, &shape);
  void* host = nullptr;
  symbol<int(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&host, 77, 0);
  tell("too_much", static_cast<unsigned long>(alloc(&a, std::size_t{1} << 40U)));
  tell("null", static_cast<unsigned long>(alloc(nullptr, 10)));
  tell("unknown_free", static_cast<unsigned long>(free_it(12345)));
  tell("null_free", static_cast<unsigned long>(free_it(0)));
  free_it(a);
  entry<AsyncFree>("cuMemFreeAsync", 11020, 2)(b, nullptr);
  symbol<Free>("cuMemRelease")(d);
  symbol<int(void*)>("cuArrayDestroy")(array);
  symbol<int(void*)>("cuMemFreeHost")(host);
  tell("twice", static_cast<unsigned long>(free_it(a)));
  return 0;
}

int many_blocks(long blocks) {
  open_driver();
  using Alloc = int(std::uint64_t*, std::size_t);
  auto* alloc = entry<Alloc>("cuMemAlloc", 3020);
  auto* free_it = entry<int(std::uint64_t)>("cuMemFree", 3020);
  std::vector<std::thread> running;
  for (int thread = 0; thread < 4; ++thread) {
    running.emplace_back([=] {
      std::vector<std::uint64_t> live(static_cast<std::size_t>(blocks));
      for (std::uint64_t& address : live) alloc(&address, 256);
      for (const std::uint64_t address : live) free_it(address);
    });
  }
  for (std::thread& thread : running) thread.join();
  return 0;
}

int graphs(long launches) {
  open_driver();
  using Node = int(void**, void*, const void*, std::size_t, const void*);
  void* graph = nullptr;
  void* child = nullptr;
  auto* create = symbol<int(void**, unsigned)>("cuGraphCreate");
  create(&graph, 0);
  create(&child, 0);
  auto* kernel = symbol<Node>("cuGraphAddKernelNode_v2");
  auto* copy = symbol<Node>("cuGraphAddMemcpyNode");
  for (int i = 0; i < 3; ++i) kernel(nullptr, graph, nullptr, 0, nullptr);
  copy(nullptr, graph, nullptr, 0, nullptr);
  for (int i = 0; i < 2; ++i) kernel(nullptr, child, nullptr, 0, nullptr);
  symbol<Node>("cuGraphAddChildGraphNode")(nullptr, graph, nullptr, 0, child);
  void* executable = nullptr;
  entry<int(void**, void*, std::uint64_t)>("cuGraphInstantiateWithFlags", 11040)(&executable, graph,
                                                                                 0);
  auto* launch_graph = entry<int(void*, void*)>("cuGraphLaunch", 10000, 2);
  for (long i = 0; i < launches; ++i) launch_graph(executable, nullptr);
  symbol<int(void*)>("cuGraphExecDestroy")(executable);
  tell("nodes", symbol<unsigned long()>("fakecuda_nodes")());
  tell_calls({"cuGraphLaunch_ptsz"});
  return 0;
}

int capture() {
  open_driver();
  Launch* function = find_launch();
  launch(function, 2);
  entry<int(void*, int)>("cuStreamBeginCapture", 10010)(nullptr, 0);
  launch(function, 6);
  void* graph = nullptr;
  entry<int(void*, void**)>("cuStreamEndCapture", 10000)(nullptr, &graph);
  void* executable = nullptr;
  entry<int(void**, void*, void*)>("cuGraphInstantiateWithParams", 12000)(&executable, graph,
                                                                          nullptr);
  auto* launch_graph = entry<int(void*, void*)>("cuGraphLaunch", 10000);
  for (int i = 0; i < 4; ++i) launch_graph(executable, nullptr);
  return 0;
}

// So many launches of a microsecond by this entry point, and how many events that took.
int paced(long launches, const char* symbol_name) {
  open_driver();
  struct {
    unsigned grid[3], block[3], bytes;
    void* stream;
  } config{{1, 1, 1}, {1, 1, 1}, 0, nullptr};
  auto* any = symbol<Launch>(symbol_name);
  auto* ex = symbol<int(const void*, void*, void**, void**)>(symbol_name);
  const bool is_ex = std::strstr(symbol_name, "Ex") != nullptr;
  for (long i = 0; i < launches; ++i) {
    if (is_ex) {
      ex(&config, nullptr, nullptr, nullptr);
    } else {
      launch(any, 1);
    }
  }
  auto* calls = symbol<unsigned long(const char*)>("fakecuda_calls");
  tell("launches", calls(symbol_name));
  tell("records", calls("cuEventRecord") + calls("cuEventRecord_ptsz"));
  return 0;
}

// Launches behind a kernel of ten seconds, which might wait for them: how long that takes.
int behind_a_long_one(long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, 20);
  const auto begun = std::chrono::steady_clock::now();
  function(nullptr, 10'000'000, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  for (long i = 0; i < launches; ++i) {
    function(nullptr, 1000, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  tell("milliseconds", static_cast<unsigned long>(
                           std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  ::_exit(0);
}

// As ctypes does it: loaded by name, functions by dlsym.
int nccl() {
  void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  struct Id {
    char bytes[128];
  } id{};
  reinterpret_cast<int (*)(Id*)>(find("ncclGetUniqueId"))(&id);
  void* communicator = nullptr;
  reinterpret_cast<int (*)(void**, int, Id, int)>(find("ncclCommInitRank"))(&communicator, 8, id,
                                                                            3);
  using Reduce = int(const void*, void*, std::size_t, int, int, void*, void*);
  using Gather = int(const void*, void*, std::size_t, int, void*, void*);
  reinterpret_cast<int (*)()>(find("ncclGroupStart"))();
  for (int i = 0; i < 5; ++i) {
    reinterpret_cast<Reduce*>(find("ncclAllReduce"))(nullptr, nullptr, 1000, 7, 0, communicator,
                                                     nullptr);
  }
  reinterpret_cast<Reduce*>(find("ncclAllReduce"))(nullptr, nullptr, 10, 9, 0, communicator,
                                                   nullptr);
  reinterpret_cast<Reduce*>(find("ncclReduceScatter"))(nullptr, nullptr, 100, 9, 0, communicator,
                                                       nullptr);
  reinterpret_cast<Gather*>(find("ncclAllGather"))(nullptr, nullptr, 100, 9, communicator, nullptr);
  void* half = nullptr;
  reinterpret_cast<int (*)(void*, int, int, void**, void*)>(find("ncclCommSplit"))(
      communicator, 1, 1, &half, nullptr);
  reinterpret_cast<Gather*>(find("ncclAllGather"))(nullptr, nullptr, 6, 2, half, nullptr);
  reinterpret_cast<int (*)(void*)>(find("ncclCommDestroy"))(half);
  reinterpret_cast<int (*)(void*)>(find("ncclCommDestroy"))(communicator);
  tell("calls", reinterpret_cast<unsigned long (*)()>(find("fakenccl_calls"))());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  const auto text = [&](int i) { return i < count ? arguments[i] : const_cast<char*>(""); };
  const auto number = [&](int i) { return std::strtol(text(i), nullptr, 10); };
  const std::map<std::string, std::function<int()>> actions = {
      {"lookups", [&] { return lookups(text(2), text(3), text(4)); }},
      {"symbols", [&] { return symbols(text(2), text(3)); }},
      {"everything", [&] { return everything(text(2)); }},
      {"no_driver", no_driver},
      {"weak_symbols", weak_symbols},
      {"other_names", other_names},
      {"threads", [&] { return threads(number(2), number(3)); }},
      {"churn", [&] { return churn(number(2)); }},
      {"late_thread", [&] { return late_thread(number(2)); }},
      {"forks", [&] { return forks(number(2), number(3)); }},
      {"execs", [&] { return execs(arguments, number(2)); }},
      {"until_killed", [&] { return until_killed(number(2)); }},
      {"closes_everything", [&] { return closes_everything(number(2)); }},
      {"closes_and_forks", [&] { return closes_and_forks(number(2), text(3)); }},
      {"at_exit", at_exit},
      {"reload", [&] { return reload(number(2)); }},
      {"every_kind", every_kind},
      {"allocations", allocations},
      {"many_blocks", [&] { return many_blocks(number(2)); }},
      {"graphs", [&] { return graphs(number(2)); }},
      {"capture", capture},
      {"nccl", nccl},
      {"memory", [&] { return memory_script(count - 2, arguments + 2); }},
      {"behind_a_long_one", [&] { return behind_a_long_one(number(2)); }},
      {"paced", [&] { return paced(number(2), text(3)); }},
      {"share",
       [&] {
         return share(open_driver(), std::vector<std::string>(arguments + 2, arguments + count));
       }},
  };
  const auto action = actions.find(what);
  if (action == actions.end()) {
    std::fprintf(stderr, "gpu_probe: what?\n");
    return 64;
  }
  return action->second();
}
