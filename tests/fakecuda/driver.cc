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
//   FAKECUDA_CONTEXT=0             bytes that a context takes
//   FAKECUDA_MODULE=0              bytes that a module takes
//   CUDA_VISIBLE_DEVICES           as the driver has it, by number or UUID
//
// With FAKECUDA_BARE defined nothing is counted and a launch does nothing at all: for benchmarks.
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
#include "memory.h"

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

using fake::kInvalidValue;
using fake::kMaxDevices;
using fake::kOk;
using fake::kOutOfMemory;
using fake::setting;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;

struct Driver {
  int physical[kMaxDevices] = {};
  int devices = fake::visible_devices(physical);
  std::uint64_t launch_ns = setting("FAKECUDA_LAUNCH_NS", 0);
  bool mig = setting("FAKECUDA_MIG", 0) != 0;
};

Driver& driver() {
  static Driver the;
  return the;
}

thread_local int current_device = 0;
// The primary context of a device is 0x1000 and its number, others are beyond.
thread_local std::intptr_t current_context = 0x1000;

void set_context(std::intptr_t context) {
  current_context = context;
  current_device = static_cast<int>((context - 0x1000) & 0xFFFF);
}
int physical(int ordinal) {
  return driver().physical[ordinal >= 0 && ordinal < kMaxDevices ? ordinal : 0];
}

#ifdef FAKECUDA_BARE
int allocate(std::uint64_t* address, std::uint64_t size) {
  static std::atomic<std::uint64_t> next{0x7F00'0000'0000};
  *address = next.fetch_add((size + 511) & ~std::uint64_t{511}, std::memory_order_relaxed);
  return kOk;
}

int release(std::uint64_t) {
  return kOk;
}
#else
int allocate(std::uint64_t* address, std::uint64_t size) {
  return fake::Memory::the().allocate(address, size, physical(current_device), current_context);
}

int release(std::uint64_t address) {
  return fake::Memory::the().release(address);
}
#endif

void run_kernels(std::uint64_t blocks) {
  fakecuda::submit(blocks * driver().launch_ns);
}

int wait_for_kernels() {
#ifndef FAKECUDA_BARE
  fake::Memory::the().settle_pools();
#endif
  if (driver().launch_ns != 0) fakecuda::wait_until_done();
  return kOk;
}

struct Graph;
struct Node {
  int type;  // as CUgraphNodeType: 0 kernel, 1 copy, 2 set, 4 child, 5 empty, 10 allocation, 11
             // free
  Graph* child;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 1;   // of a kernel's grid
  std::uint64_t address = 0;  // allocated or freed
};
struct Graph {
  std::vector<Node*> nodes;
};
struct Executable {
  std::uint64_t nodes;
  std::uint64_t blocks;
  std::uint64_t bytes;  // at most at a time
};
thread_local Graph* capturing = nullptr;

// Modes as CUstreamCaptureMode. What might block ends captures unless it is known to be harmless: a
// thread in the global mode ends its own and all that are global, one in the second its own.
enum Mode : int { kGlobal = 0, kOwnThread = 1, kRelaxed = 2 };
constexpr int kUnsupported = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kInvalidated = 901;
thread_local int thread_mode = kGlobal;
thread_local int capture_mode = kRelaxed;
thread_local std::uint64_t capture_begun = 0;
std::atomic<int> global_captures{0};
std::atomic<std::uint64_t> ended_captures{0};  // a date: those begun before it are not valid
std::atomic<std::uint64_t> capture_date{1};
thread_local bool own_capture_ended = false;

[[maybe_unused]] bool ends_captures() {
  if (thread_mode == kRelaxed) return false;
  const bool own = capturing != nullptr && capture_mode != kRelaxed;
  const bool others = thread_mode == kGlobal && global_captures.load() > 0;
  if (own) own_capture_ended = true;
  if (others) ended_captures = capture_date.fetch_add(1);
  return own || others;
}
#ifdef FAKECUDA_BARE
#define UNSAFE()
#else
#define UNSAFE() \
  if (ends_captures()) return kUnsupported
#endif

int begin_capture(int mode) {
  capturing = new Graph;
  capture_mode = mode;
  capture_begun = capture_date.fetch_add(1);
  own_capture_ended = false;
  if (mode == kGlobal) ++global_captures;
  return kOk;
}
int end_capture(void** graph) {
  *graph = capturing;
  capturing = nullptr;
  if (capture_mode == kGlobal) --global_captures;
  const bool ended =
      own_capture_ended || (capture_mode == kGlobal && ended_captures.load() > capture_begun);
  if (ended) *graph = nullptr;
  return ended ? kInvalidated : kOk;
}

int add_node(void** node, void* graph, int type, Graph* child = nullptr, std::uint64_t bytes = 0,
             std::uint64_t blocks = 1, std::uint64_t address = 0) {
  auto* added = new Node{type, child, bytes, blocks, address};
  static_cast<Graph*>(graph)->nodes.push_back(added);
  if (node != nullptr) *node = added;
  return kOk;
}

// What is freed is there for the next: nodes run one after the other here.
void add_up(const Graph& graph, Executable& sum, std::map<std::uint64_t, std::uint64_t>& live) {
  for (const Node* node : graph.nodes) {
    if (node->type == 4 && node->child != nullptr) {
      add_up(*node->child, sum, live);
      continue;
    }
    ++sum.nodes;
    sum.blocks += node->type == 0 ? node->blocks : 0;
    if (node->type == 10) live[node->address] += node->bytes;
    if (node->type == 11) live.erase(node->address);
    std::uint64_t now = 0;
    for (const auto& [address, bytes] : live) now += bytes;
    sum.bytes = std::max(sum.bytes, now);
  }
}

int instantiate(void** executable, void* graph) {
  auto* made = new Executable{};
  std::map<std::uint64_t, std::uint64_t> live;
  add_up(*static_cast<Graph*>(graph), *made, live);
  *executable = made;
  return kOk;
}

int launch([[maybe_unused]] std::uint64_t blocks) {
#ifndef FAKECUDA_BARE
  if (capturing != nullptr) return add_node(nullptr, capturing, 0, nullptr, 0, blocks);
  run_kernels(blocks);
#endif
  return kOk;
}

int launch_graph(void* executable) {
  const auto* graph = static_cast<Executable*>(executable);
  if (!fake::Memory::the().take_for_graph(physical(current_device), graph->bytes)) {
    return kOutOfMemory;
  }
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
  if (bytes == 0) {
    *out = reinterpret_cast<void*>(fake::Memory::the().address_in_graph(512));
    return kOk;
  }
  std::uint64_t address = 0;
  const int result = allocate(&address, bytes);
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
// CUarray_format: 8 bits as 1 and 8, 16 as 2, 9 and 16, 32 as 3, 10 and 32. NV12 and BC1, which
// have twelve bits an element and four.
std::size_t format_bits(const Array3dShape& shape) {
  const int format = shape.format;
  if (format == 0xB0) return 12;
  if (format == 0x91) return 4;
  const bool normalised = format >= 0xC3 && format <= 0xC5;
  if (format == 2 || format == 9 || format == 16 || normalised) return 16 * shape.channels;
  return (format == 3 || format == 10 || format == 32 ? 32 : 8) * shape.channels;
}
// Sparse arrays and those that are mapped later take nothing.
std::size_t bytes_of(const Array3dShape& shape) {
  if ((shape.flags & 0xC0U) != 0) return 0;
  return shape.width * at_least_one(shape.height) * at_least_one(shape.depth) * format_bits(shape) /
         8;
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
// As the real one: null is an invalid value.
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  count(k_cuMemGetInfo_v2);
  if (free_bytes == nullptr || total == nullptr) return kInvalidValue;
  *total = fake::Memory::the().total();
  *free_bytes = *total - fake::Memory::used(physical(current_device));
  return kOk;
}

#define ALLOCATOR(symbol, parameters, address, size) \
  int symbol parameters {                            \
    count(k_##symbol);                               \
    UNSAFE();                                        \
    return allocate(address, size);                  \
  }
ALLOCATOR(cuMemAlloc_v2, (std::uint64_t * out, std::size_t size), out, size)
ALLOCATOR(cuMemAllocManaged, (std::uint64_t * out, std::size_t size, unsigned), out, size)

int allocate_from(void* pool, std::uint64_t* out, std::size_t size) {
  if (capturing != nullptr) {
    *out = fake::Memory::the().address_in_graph(size);
    return add_node(nullptr, capturing, 10, nullptr, size, 1, *out);
  }
  return fake::Memory::the().allocate_from(static_cast<fake::Memory::Pool*>(pool), out, size,
                                           physical(current_device), current_context);
}
#define POOL_ALLOCATOR(symbol, parameters, pool) \
  int symbol parameters {                        \
    count(k_##symbol);                           \
    return allocate_from(pool, out, size);       \
  }
POOL_ALLOCATOR(cuMemAllocAsync, (std::uint64_t * out, std::size_t size, void*), nullptr)
POOL_ALLOCATOR(cuMemAllocAsync_ptsz, (std::uint64_t * out, std::size_t size, void*), nullptr)
POOL_ALLOCATOR(cuMemAllocFromPoolAsync, (std::uint64_t * out, std::size_t size, void* pool, void*),
               pool)
POOL_ALLOCATOR(cuMemAllocFromPoolAsync_ptsz,
               (std::uint64_t * out, std::size_t size, void* pool, void*), pool)
int cuDeviceGetDefaultMemPool(void** pool, int device) {
  count(k_cuDeviceGetDefaultMemPool);
  *pool = fake::Memory::the().default_pool(physical(device));
  return kOk;
}
int cuDeviceGetMemPool(void** pool, int device) {
  count(k_cuDeviceGetMemPool);
  *pool = fake::Memory::the().default_pool(physical(device));
  return kOk;
}
// CUmemPoolProps: the location's type is at 8, its number at 12.
int cuMemPoolCreate(void** pool, const int* properties) {
  count(k_cuMemPoolCreate);
  *pool = fake::Memory::the().new_pool(properties[2] == 1 ? physical(properties[3]) : -1);
  return kOk;
}
int cuMemGetDefaultMemPool(void** pool, const int* location, int) {
  count(k_cuMemGetDefaultMemPool);
  static fake::Memory::Pool* const host = fake::Memory::the().new_pool(-1);
  *pool = location[0] == 1 ? fake::Memory::the().default_pool(physical(location[1])) : host;
  return kOk;
}
int cuMemPoolSetAttribute(void* pool, int attribute, const void* value) {
  count(k_cuMemPoolSetAttribute);
  constexpr int kThreshold = 4;
  if (attribute != kThreshold) return kInvalidValue;
  std::memcpy(&static_cast<fake::Memory::Pool*>(pool)->threshold, value, sizeof(std::uint64_t));
  return kOk;
}
int cuMemPoolDestroy(void* pool) {
  count(k_cuMemPoolDestroy);
  fake::Memory::the().destroy_pool(static_cast<fake::Memory::Pool*>(pool));
  return kOk;
}
int cuMemPoolTrimTo(void* pool, std::size_t keep) {
  count(k_cuMemPoolTrimTo);
  UNSAFE();
  fake::Memory::the().trim(static_cast<fake::Memory::Pool*>(pool), keep);
  return kOk;
}
int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  count(k_cuMemPoolGetAttribute);
  UNSAFE();
  const auto* of = static_cast<fake::Memory::Pool*>(pool);
  const std::uint64_t bytes = attribute == 5 ? of->reserved : of->used;
  std::memcpy(value, &bytes, sizeof bytes);
  return kOk;
}
// CUmemAllocationProp: the device is at 12.
int cuMemCreate(std::uint64_t* out, std::size_t size, const int* properties, std::uint64_t) {
  count(k_cuMemCreate);
  return fake::Memory::the().create(out, size, physical(properties[3]));
}
int cuMemMap(std::uint64_t address, std::size_t size, std::size_t, std::uint64_t handle,
             std::uint64_t) {
  count(k_cuMemMap);
  return fake::Memory::the().map(address, size, handle);
}
int cuMemUnmap(std::uint64_t address, std::size_t size) {
  count(k_cuMemUnmap);
  return fake::Memory::the().unmap(address, size);
}
int cuMemRetainAllocationHandle(std::uint64_t* handle, std::uint64_t address) {
  count(k_cuMemRetainAllocationHandle);
  return fake::Memory::the().retain(handle, address);
}
int cuMemRelease(std::uint64_t handle) {
  count(k_cuMemRelease);
  return fake::Memory::the().release_handle(handle);
}
int cuMemAllocPitch_v2(std::uint64_t* out, std::size_t* pitch, std::size_t width,
                       std::size_t height, unsigned) {
  count(k_cuMemAllocPitch_v2);
  *pitch = (width + 511) & ~std::size_t{511};
  return allocate(out, *pitch * height);
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
#define RELEASE_ASYNC(symbol)                                                                  \
  int symbol(std::uint64_t address, void*) {                                                   \
    count(k_##symbol);                                                                         \
    if (capturing != nullptr) return add_node(nullptr, capturing, 11, nullptr, 0, 1, address); \
    return release(address);                                                                   \
  }
RELEASE_ASYNC(cuMemFreeAsync)
RELEASE_ASYNC(cuMemFreeAsync_ptsz)
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
  std::uint64_t size = 0;
  std::memcpy(&size, bytes + 104, sizeof size);
  const std::uint64_t address = fake::Memory::the().address_in_graph(size);
  std::memcpy(bytes + 112, &address, sizeof address);
  return add_node(node, graph, 10, nullptr, size, 1, address);
}
int cuGraphMemAllocNodeGetParams(void* node, void* parameters) {
  count(k_cuGraphMemAllocNodeGetParams);
  const auto* of = static_cast<Node*>(node);
  std::memcpy(static_cast<unsigned char*>(parameters) + 104, &of->bytes, 8);
  std::memcpy(static_cast<unsigned char*>(parameters) + 112, &of->address, 8);
  return kOk;
}
int cuGraphAddMemFreeNode(void** node, void* graph, const void*, std::size_t,
                          std::uint64_t address) {
  count(k_cuGraphAddMemFreeNode);
  return add_node(node, graph, 11, nullptr, 0, 1, address);
}
int cuGraphMemFreeNodeGetParams(void* node, std::uint64_t* address) {
  count(k_cuGraphMemFreeNodeGetParams);
  *address = static_cast<Node*>(node)->address;
  return kOk;
}
// CUgraphNodeParams: the type, and what it needs from 16 on.
int add_any_node(void** node, void* graph, void* parameters) {
  auto* bytes = static_cast<unsigned char*>(parameters);
  int type = 0;
  std::memcpy(&type, bytes, sizeof type);
  if (type == 10) return cuGraphAddMemAllocNode(node, graph, nullptr, 0, bytes + 16);
  std::uint64_t address = 0;
  if (type == 11) std::memcpy(&address, bytes + 16, sizeof address);
  return add_node(node, graph, type, nullptr, 0, 1, address);
}
int cuGraphAddNode(void** node, void* graph, const void*, std::size_t, void* parameters) {
  count(k_cuGraphAddNode);
  return add_any_node(node, graph, parameters);
}
int cuGraphAddNode_v2(void** node, void* graph, const void*, const void*, std::size_t,
                      void* parameters) {
  count(k_cuGraphAddNode_v2);
  return add_any_node(node, graph, parameters);
}
int cuDeviceGetGraphMemAttribute(int device, int, void* value) {
  count(k_cuDeviceGetGraphMemAttribute);
  UNSAFE();
  const std::uint64_t bytes = fake::Memory::the().of_graphs(physical(device));
  std::memcpy(value, &bytes, sizeof bytes);
  return kOk;
}
int cuDeviceGraphMemTrim(int device) {
  count(k_cuDeviceGraphMemTrim);
  fake::Memory::the().trim_graphs(physical(device));
  return kOk;
}
#define IS_CAPTURING(symbol)                \
  int symbol(void*, int* status) {          \
    count(k_##symbol);                      \
    *status = capturing != nullptr ? 1 : 0; \
    return kOk;                             \
  }
IS_CAPTURING(cuStreamIsCapturing)
IS_CAPTURING(cuStreamIsCapturing_ptsz)
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
int cuStreamBeginCapture_v2(void*, int mode) {
  count(k_cuStreamBeginCapture_v2);
  return begin_capture(mode);
}
int cuStreamBeginCapture_v2_ptsz(void*, int mode) {
  count(k_cuStreamBeginCapture_v2_ptsz);
  return begin_capture(mode);
}
int cuStreamEndCapture(void*, void** graph) {
  count(k_cuStreamEndCapture);
  return end_capture(graph);
}
int cuStreamEndCapture_ptsz(void*, void** graph) {
  count(k_cuStreamEndCapture_ptsz);
  return end_capture(graph);
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  count(k_cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, thread_mode);
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
