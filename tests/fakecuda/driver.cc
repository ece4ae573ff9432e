// A libcuda.so.1 without a GPU: every entry point of the driver exists and counts its calls;
// devices, memory, graphs and time are modelled as far as tests need them. Set up by environment:
//
//   FAKECUDA_DEVICES=1             how many
//   FAKECUDA_MEMORY=1073741824     bytes of each
//   FAKECUDA_LAUNCH_NS=0           what a kernel takes, times the blocks of its grid; synchronising
//                                  waits for it
//   FAKECUDA_CLOCK=FILE            one GPU for all processes that name it (clock.h)
//   FAKECUDA_NO_EVENTS=1           events cannot be made
//   FAKECUDA_MIG=1                 devices are slices: cuDeviceGetUuid tells the card's UUID,
//                                  cuDeviceGetUuid_v2 the slice's
//   FAKECUDA_STATE=FILE            bytes used, shared with other processes
//
// With FAKECUDA_BARE defined nothing is counted and a launch does nothing at all: for benchmarks.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "clock.h"
#include "fakecuda.h"

namespace {

enum Symbol : int {
#define PLAIN(name, version, per_thread, symbol) k_##symbol,
#define MODELLED(name, version, per_thread, symbol) k_##symbol,
#include "entries.inc"
#undef PLAIN
#undef MODELLED
  kSymbols
};

std::atomic<std::uint64_t> called[kSymbols];
std::atomic<std::uint64_t> nodes_run{0};

void count(Symbol symbol) {
#ifdef FAKECUDA_BARE
  (void)symbol;
#else
  called[symbol].fetch_add(1, std::memory_order_relaxed);
#endif
}

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kMaxDevices = 16;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Shared {
  std::atomic<std::uint64_t> used[kMaxDevices];
};

struct Driver {
  int devices = static_cast<int>(setting("FAKECUDA_DEVICES", 1));
  std::uint64_t memory = setting("FAKECUDA_MEMORY", std::uint64_t{1} << 30U);
  std::uint64_t launch_ns = setting("FAKECUDA_LAUNCH_NS", 0);
  bool mig = setting("FAKECUDA_MIG", 0) != 0;
  Shared own{};
  Shared* shared = &own;

  Driver() {
    const char* state = std::getenv("FAKECUDA_STATE");
    if (state == nullptr) return;
    const int file = ::open(state, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return;
    void* memory_of_all =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory_of_all != MAP_FAILED) shared = static_cast<Shared*>(memory_of_all);
  }
};

Driver& driver() {
  static Driver the;
  return the;
}

thread_local int current_device = 0;

#ifdef FAKECUDA_BARE
int allocate(std::uint64_t* address, std::uint64_t size, int) {
  static std::atomic<std::uint64_t> next{0x7F00'0000'0000};
  *address = next.fetch_add((size + 511) & ~std::uint64_t{511}, std::memory_order_relaxed);
  return kOk;
}

int release(std::uint64_t) {
  return kOk;
}
#else
// Addresses that nothing else has, and sizes of what is live.
struct Live {
  std::uint64_t size;
  int device;
};
std::mutex live_mutex;
std::map<std::uint64_t, Live> live;
std::uint64_t next_address = 0x7F00'0000'0000;

int allocate(std::uint64_t* address, std::uint64_t size, int device) {
  if (address == nullptr || size == 0) return kInvalidValue;
  auto& used = driver().shared->used[device];
  std::uint64_t before = used.load();
  do {
    if (before + size > driver().memory) return kOutOfMemory;
  } while (!used.compare_exchange_weak(before, before + size));
  const std::lock_guard lock(live_mutex);
  *address = next_address;
  next_address += (size + 511) & ~std::uint64_t{511};
  live[*address] = {size, device};
  return kOk;
}

int release(std::uint64_t address) {
  if (address == 0) return kOk;
  const std::lock_guard lock(live_mutex);
  const auto found = live.find(address);
  if (found == live.end()) return kInvalidValue;
  driver().shared->used[found->second.device] -= found->second.size;
  live.erase(found);
  return kOk;
}
#endif

void run_kernels(std::uint64_t blocks) {
  fakecuda::submit(blocks * driver().launch_ns);
}

int wait_for_kernels() {
  if (driver().launch_ns != 0) fakecuda::wait_until_done();
  return kOk;
}

struct Graph;
struct Node {
  int type;  // as CUgraphNodeType: 0 kernel, 1 copy, 2 set, 4 child graph, 5 empty, 10 allocation
  Graph* child;
  std::uint64_t blocks = 1;  // of a kernel's grid
};
struct Graph {
  std::vector<Node*> nodes;
};
struct Executable {
  std::uint64_t nodes;
  std::uint64_t blocks;
};
thread_local Graph* capturing = nullptr;

int add_node(void** node, void* graph, int type, Graph* child = nullptr, std::uint64_t blocks = 1) {
  auto* added = new Node{type, child, blocks};
  static_cast<Graph*>(graph)->nodes.push_back(added);
  if (node != nullptr) *node = added;
  return kOk;
}

void add_up(const Graph& graph, Executable& sum) {
  for (const Node* node : graph.nodes) {
    if (node->type == 4 && node->child != nullptr) {
      add_up(*node->child, sum);
      continue;
    }
    ++sum.nodes;
    sum.blocks += node->type == 0 ? node->blocks : 0;
  }
}

int instantiate(void** executable, void* graph) {
  auto* made = new Executable{};
  add_up(*static_cast<Graph*>(graph), *made);
  *executable = made;
  return kOk;
}

int launch([[maybe_unused]] std::uint64_t blocks) {
#ifndef FAKECUDA_BARE
  if (capturing != nullptr) return add_node(nullptr, capturing, 0, nullptr, blocks);
  run_kernels(blocks);
#endif
  return kOk;
}

int launch_graph(void* executable) {
  const auto* graph = static_cast<Executable*>(executable);
  nodes_run.fetch_add(graph->nodes);
  run_kernels(graph->blocks);
  return kOk;
}

struct Event {
  std::uint64_t place = 0;
  std::uint64_t recorded = 0;
  std::uint64_t done = 0;  // once somebody has seen it: the clock forgets
};
// What an event in a capturing stream would be is a node: nobody may ask for its time.
int record(void* event) {
#ifndef FAKECUDA_BARE
  if (capturing != nullptr) return add_node(nullptr, capturing, 5);
  *static_cast<Event*>(event) = {fakecuda::submitted(), fakecuda::now_ns(), 0};
#endif
  (void)event;
  return kOk;
}
// When everything before the event had run; 0: not yet.
std::uint64_t time_of(void* event) {
#ifdef FAKECUDA_BARE
  (void)event;
  return 1;
#else
  auto* of = static_cast<Event*>(event);
  if (of->done == 0) {
    const std::uint64_t done = fakecuda::done_at(of->place);
    of->done = done == 0 ? 0 : std::max(done, of->recorded);
  }
  return of->done;
#endif
}
int elapsed(float* milliseconds, void* from, void* to) {
  const std::uint64_t begin = time_of(from);
  const std::uint64_t end = time_of(to);
  if (begin == 0 || end == 0) return kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(end - begin) / 1e6);
  return kOk;
}

int array(void** out, std::uint64_t bytes) {
  std::uint64_t address = 0;
  const int result = allocate(&address, bytes, current_device);
  if (result == kOk) *out = reinterpret_cast<void*>(address);
  return result;
}

struct ArrayShape {  // CUDA_ARRAY_DESCRIPTOR
  std::size_t width, height;
  int format;
  unsigned channels;
};
struct Array3dShape {  // CUDA_ARRAY3D_DESCRIPTOR
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
std::size_t at_least_one(std::size_t value) {
  return value == 0 ? 1 : value;
}
// CUarray_format: 8 bits as 1 and 8, 16 as 2, 9 and 16, 32 as 3, 10 and 32.
std::size_t format_bytes(int format) {
  if (format == 2 || format == 9 || format == 16) return 2;
  return format == 3 || format == 10 || format == 32 ? 4 : 1;
}
std::size_t bytes_of(const Array3dShape& shape) {
  return shape.width * at_least_one(shape.height) * at_least_one(shape.depth) * shape.channels *
         format_bytes(shape.format);
}

}  // namespace

extern "C" {

#define PLAIN(name, version, per_thread, symbol) \
  int symbol() {                                 \
    count(k_##symbol);                           \
    return kOk;                                  \
  }
#define MODELLED(name, version, per_thread, symbol)
#include "entries.inc"
#undef PLAIN
#undef MODELLED

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
  uuid[15] = static_cast<unsigned char>(driver().mig ? 0 : device);
  return kOk;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  count(k_cuDeviceGetUuid_v2);
  std::memset(uuid, driver().mig ? 0xB0 : 0xA0, 16);
  uuid[15] = static_cast<unsigned char>(device);
  return kOk;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  count(k_cuDeviceTotalMem_v2);
  *bytes = driver().memory;
  return kOk;
}
int cuDeviceGetName(char* name, int length, int) {
  count(k_cuDeviceGetName);
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return kOk;
}
int cuCtxCreate_v2(void** context, unsigned, int device) {
  count(k_cuCtxCreate_v2);
  current_device = device;
  *context = reinterpret_cast<void*>(0x1000L + device);
  return kOk;
}
int cuCtxCreate_v4(void** context, void*, unsigned, int device) {
  count(k_cuCtxCreate_v4);
  current_device = device;
  *context = reinterpret_cast<void*>(0x1000L + device);
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  count(k_cuDevicePrimaryCtxRetain);
  *context = reinterpret_cast<void*>(0x1000L + device);
  return kOk;
}
int cuCtxSetCurrent(void* context) {
  count(k_cuCtxSetCurrent);
  current_device = static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 0x1000);
  return kOk;
}
int cuCtxGetCurrent(void** context) {
  count(k_cuCtxGetCurrent);
  *context = reinterpret_cast<void*>(0x1000L + current_device);
  return kOk;
}
int cuCtxGetDevice(int* device) {
  count(k_cuCtxGetDevice);
  *device = current_device;
  return kOk;
}
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  count(k_cuMemGetInfo_v2);
  const std::uint64_t used = driver().shared->used[current_device].load();
  if (free_bytes != nullptr) *free_bytes = driver().memory - used;
  if (total != nullptr) *total = driver().memory;
  return kOk;
}

#define ALLOCATOR(symbol, parameters, address, size) \
  int symbol parameters {                            \
    count(k_##symbol);                               \
    return allocate(address, size, current_device);  \
  }
ALLOCATOR(cuMemAlloc_v2, (std::uint64_t * out, std::size_t size), out, size)
ALLOCATOR(cuMemAllocManaged, (std::uint64_t * out, std::size_t size, unsigned), out, size)
ALLOCATOR(cuMemAllocAsync, (std::uint64_t * out, std::size_t size, void*), out, size)
ALLOCATOR(cuMemAllocAsync_ptsz, (std::uint64_t * out, std::size_t size, void*), out, size)
ALLOCATOR(cuMemAllocFromPoolAsync, (std::uint64_t * out, std::size_t size, void*, void*), out, size)
ALLOCATOR(cuMemAllocFromPoolAsync_ptsz, (std::uint64_t * out, std::size_t size, void*, void*), out,
          size)
ALLOCATOR(cuMemCreate, (std::uint64_t * out, std::size_t size, const void*, std::uint64_t), out,
          size)
int cuMemAllocPitch_v2(std::uint64_t* out, std::size_t* pitch, std::size_t width,
                       std::size_t height, unsigned) {
  count(k_cuMemAllocPitch_v2);
  *pitch = (width + 511) & ~std::size_t{511};
  return allocate(out, *pitch * height, current_device);
}
int cuArrayCreate_v2(void** out, const ArrayShape* shape) {
  count(k_cuArrayCreate_v2);
  return array(out, bytes_of({shape->width, shape->height, 0, shape->format, shape->channels, 0}));
}
int cuArray3DCreate_v2(void** out, const Array3dShape* shape) {
  count(k_cuArray3DCreate_v2);
  return array(out, bytes_of(*shape));
}
int cuMipmappedArrayCreate(void** out, const Array3dShape* shape, unsigned) {
  count(k_cuMipmappedArrayCreate);
  return array(out, bytes_of(*shape));
}
int cuMemHostAlloc(void** out, std::size_t size, unsigned) {
  count(k_cuMemHostAlloc);
  *out = std::malloc(size);
  return kOk;
}
int cuMemAllocHost_v2(void** out, std::size_t size) {
  count(k_cuMemAllocHost_v2);
  *out = std::malloc(size);
  return kOk;
}
int cuMemFreeHost(void* memory) {
  count(k_cuMemFreeHost);
  std::free(memory);
  return kOk;
}

#define RELEASE(symbol, parameters, address) \
  int symbol parameters {                    \
    count(k_##symbol);                       \
    return release(address);                 \
  }
RELEASE(cuMemFree_v2, (std::uint64_t address), address)
RELEASE(cuMemFreeAsync, (std::uint64_t address, void*), address)
RELEASE(cuMemFreeAsync_ptsz, (std::uint64_t address, void*), address)
RELEASE(cuMemRelease, (std::uint64_t handle), handle)
RELEASE(cuArrayDestroy, (void* handle), reinterpret_cast<std::uint64_t>(handle))
RELEASE(cuMipmappedArrayDestroy, (void* handle), reinterpret_cast<std::uint64_t>(handle))

#define LAUNCH(symbol)                                      \
  int symbol(void*, unsigned x, unsigned y, unsigned z) {   \
    count(k_##symbol);                                      \
    return launch(std::uint64_t{x} * std::uint64_t{y} * z); \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH(cuLaunchCooperativeKernel)
LAUNCH(cuLaunchCooperativeKernel_ptsz)
#define LAUNCH_EX(symbol)                                                                 \
  int symbol(const unsigned* grid) {                                                      \
    count(k_##symbol);                                                                    \
    const bool timed = driver().launch_ns != 0; /* or nobody may have passed one */       \
    return launch(timed ? std::uint64_t{grid[0]} * std::uint64_t{grid[1]} * grid[2] : 1); \
  }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

int cuGraphCreate(void** graph, unsigned) {
  count(k_cuGraphCreate);
  *graph = new Graph;
  return kOk;
}
int cuGraphDestroy(void* graph) {
  count(k_cuGraphDestroy);
  for (const Node* node : static_cast<Graph*>(graph)->nodes) delete node;
  delete static_cast<Graph*>(graph);
  return kOk;
}
#define NODE(symbol, type)                                                      \
  int symbol(void** node, void* graph, const void*, std::size_t, const void*) { \
    count(k_##symbol);                                                          \
    return add_node(node, graph, type);                                         \
  }
NODE(cuGraphAddKernelNode, 0)
NODE(cuGraphAddKernelNode_v2, 0)
NODE(cuGraphAddMemcpyNode, 1)
NODE(cuGraphAddMemsetNode, 2)
NODE(cuGraphAddEmptyNode, 5)
int cuGraphAddMemAllocNode(void** node, void* graph, const void*, std::size_t, void* parameters) {
  count(k_cuGraphAddMemAllocNode);
  // CUDA_MEM_ALLOC_NODE_PARAMS: size at 104, address at 112.
  auto* bytes = static_cast<unsigned char*>(parameters);
  const std::uint64_t address = 0x7E00'0000'0000;
  std::memcpy(bytes + 112, &address, sizeof address);
  return add_node(node, graph, 10);
}
int cuGraphAddChildGraphNode(void** node, void* graph, const void*, std::size_t, void* child) {
  count(k_cuGraphAddChildGraphNode);
  return add_node(node, graph, 4, static_cast<Graph*>(child));
}
int cuGraphGetNodes(void* graph, void** nodes, std::size_t* number) {
  count(k_cuGraphGetNodes);
  const auto& all = static_cast<Graph*>(graph)->nodes;
  if (nodes == nullptr) {
    *number = all.size();
    return kOk;
  }
  for (std::size_t i = 0; i < *number; ++i) nodes[i] = i < all.size() ? all[i] : nullptr;
  return kOk;
}
int cuGraphNodeGetType(void* node, int* type) {
  count(k_cuGraphNodeGetType);
  *type = static_cast<Node*>(node)->type;
  return kOk;
}
int cuGraphChildGraphNodeGetGraph(void* node, void** graph) {
  count(k_cuGraphChildGraphNodeGetGraph);
  *graph = static_cast<Node*>(node)->child;
  return kOk;
}
int cuGraphInstantiate(void** out, void* graph, void**, char*, std::size_t) {
  count(k_cuGraphInstantiate);
  return instantiate(out, graph);
}
int cuGraphInstantiate_v2(void** out, void* graph, void**, char*, std::size_t) {
  count(k_cuGraphInstantiate_v2);
  return instantiate(out, graph);
}
int cuGraphInstantiateWithFlags(void** out, void* graph, std::uint64_t) {
  count(k_cuGraphInstantiateWithFlags);
  return instantiate(out, graph);
}
int cuGraphInstantiateWithParams(void** out, void* graph, void*) {
  count(k_cuGraphInstantiateWithParams);
  return instantiate(out, graph);
}
int cuGraphInstantiateWithParams_ptsz(void** out, void* graph, void*) {
  count(k_cuGraphInstantiateWithParams_ptsz);
  return instantiate(out, graph);
}
int cuGraphExecDestroy(void* executable) {
  count(k_cuGraphExecDestroy);
  delete static_cast<Executable*>(executable);
  return kOk;
}
int cuGraphLaunch(void* executable, void*) {
  count(k_cuGraphLaunch);
  return launch_graph(executable);
}
int cuGraphLaunch_ptsz(void* executable, void*) {
  count(k_cuGraphLaunch_ptsz);
  return launch_graph(executable);
}
int cuStreamBeginCapture_v2(void*, int) {
  count(k_cuStreamBeginCapture_v2);
  capturing = new Graph;
  return kOk;
}
int cuStreamBeginCapture_v2_ptsz(void*, int) {
  count(k_cuStreamBeginCapture_v2_ptsz);
  capturing = new Graph;
  return kOk;
}
int cuStreamEndCapture(void*, void** graph) {
  count(k_cuStreamEndCapture);
  *graph = capturing;
  capturing = nullptr;
  return kOk;
}
int cuStreamEndCapture_ptsz(void*, void** graph) {
  count(k_cuStreamEndCapture_ptsz);
  *graph = capturing;
  capturing = nullptr;
  return kOk;
}
#define SYNCHRONISE(symbol)    \
  int symbol() {               \
    count(k_##symbol);         \
    return wait_for_kernels(); \
  }
SYNCHRONISE(cuCtxSynchronize)
SYNCHRONISE(cuStreamSynchronize)
SYNCHRONISE(cuStreamSynchronize_ptsz)
SYNCHRONISE(cuEventSynchronize)

// Events: a place in the queue of work, and when they were put there.
int cuEventCreate(void** event, unsigned) {
  count(k_cuEventCreate);
  static const bool none = setting("FAKECUDA_NO_EVENTS", 0) != 0;
  if (none) return kOutOfMemory;
  *event = new Event{};
  return kOk;
}
int cuEventDestroy_v2(void* event) {
  count(k_cuEventDestroy_v2);
  delete static_cast<Event*>(event);
  return kOk;
}
int cuEventRecord(void* event, void*) {
  count(k_cuEventRecord);
  return record(event);
}
int cuEventRecord_ptsz(void* event, void*) {
  count(k_cuEventRecord_ptsz);
  return record(event);
}
int cuEventQuery(void* event) {
  count(k_cuEventQuery);
  return time_of(event) == 0 ? kNotReady : kOk;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  count(k_cuEventElapsedTime);
  return elapsed(milliseconds, from, to);
}
int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) {
  count(k_cuEventElapsedTime_v2);
  return elapsed(milliseconds, from, to);
}
int cuStreamIsCapturing(void*, int* status) {
  count(k_cuStreamIsCapturing);
  *status = capturing != nullptr ? 1 : 0;
  return kOk;
}
int cuStreamIsCapturing_ptsz(void*, int* status) {
  count(k_cuStreamIsCapturing_ptsz);
  *status = capturing != nullptr ? 1 : 0;
  return kOk;
}
int cuCtxGetId(void*, unsigned long long* id) {
  count(k_cuCtxGetId);
  *id = static_cast<unsigned long long>(current_device) + 1;
  return kOk;
}

int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags);
int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                        int* status);

}  // extern "C"

namespace {

struct Entry {
  const char* name;
  int version;
  bool per_thread;
  const char* symbol;
  void* function;
};

const Entry kEntries[] = {
#define PLAIN(name, version, per_thread, symbol) \
  {#name, version, per_thread, #symbol, reinterpret_cast<void*>(symbol)},
#define MODELLED PLAIN
#include "entries.inc"
#undef PLAIN
#undef MODELLED
};

// The newest that is not newer than the caller, of the kind that is asked for. What has no variant
// for per-thread streams is the same for both.
const Entry* find(const char* name, int version, bool per_thread) {
  const Entry* best = nullptr;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, name) != 0 || entry.version > version ||
        entry.per_thread != per_thread) {
      continue;
    }
    if (best == nullptr || entry.version > best->version) best = &entry;
  }
  return best == nullptr && per_thread ? find(name, version, false) : best;
}

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
unsigned long fakecuda_had_ns() {
  return fakecuda::had();
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
