// Every kind of work that is counted: launches, copies, memory, graphs, collectives.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/probe.h"

namespace probe {

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
  print("too_much", static_cast<unsigned long>(alloc(&a, std::size_t{1} << 40U)));
  print("null", static_cast<unsigned long>(alloc(nullptr, 10)));
  print("unknown_free", static_cast<unsigned long>(free_it(12345)));
  print("null_free", static_cast<unsigned long>(free_it(0)));
  free_it(a);
  entry<AsyncFree>("cuMemFreeAsync", 11020, 2)(b, nullptr);
  symbol<Free>("cuMemRelease")(d);
  symbol<int(void*)>("cuArrayDestroy")(array);
  symbol<int(void*)>("cuMemFreeHost")(host);
  print("twice", static_cast<unsigned long>(free_it(a)));
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
  print("nodes", symbol<unsigned long()>("fakecuda_nodes")());
  print_calls({"cuGraphLaunch_ptsz"});
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

// Launches of a microsecond by this entry point; prints how many events were recorded.
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
  print("launches", calls(symbol_name));
  print("records", calls("cuEventRecord") + calls("cuEventRecord_ptsz"));
  return 0;
}

// Launches after a kernel of ten seconds, which might wait for them; prints how long that takes.
int queued_behind_long_kernel(long launches) {
  open_driver();
  Launch* function = find_launch();
  launch(function, 20);
  const auto begun = std::chrono::steady_clock::now();
  function(nullptr, 100'000'000, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  for (long i = 0; i < launches; ++i) {
    function(nullptr, 1000, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  print("milliseconds", static_cast<unsigned long>(
                            std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  ::_exit(0);
}

// As ctypes does: loaded by name, functions by dlsym.
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
  print("calls", reinterpret_cast<unsigned long (*)()>(find("fakenccl_calls"))());
  return 0;
}

}  // namespace probe
