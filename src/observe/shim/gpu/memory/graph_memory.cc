// Allocation nodes of graphs. Their memory is allocated at the first launch and kept for later
// launches, also of other graphs, until it is trimmed. So a launch reserves what its graph needs
// beyond what graphs already hold, and afterwards the driver is queried for the actual amount.
#include "observe/shim/gpu/memory/graph_memory.h"

#include <stdlib.h>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

constexpr std::uint64_t kKibibyte = 1024;
// Bytes that graphs of this process have been charged for, by device.
constinit std::atomic<std::uint64_t> charged[kGpuDevices] = {};

// CUDA_MEM_ALLOC_NODE_PARAMS: the size is at 104. With space for fields of later versions.
struct Parameters {
  unsigned char before[104];
  std::size_t bytes;
  std::uint64_t address;
  unsigned char after[136];
};

void charge(std::uint32_t device_index, std::uint64_t bytes) {
  const std::uint64_t before = charged[device_index].exchange(bytes);
  if (bytes > before) add_unconditionally(device_index, bytes - before);
  if (bytes < before) give_back(device_index, before - bytes);
}

// False: the driver does not report it.
bool query_driver(std::uint32_t device_index, std::uint64_t& bytes) {
  constexpr int kReservedNow = 2;  // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
  const int device = ordinal_of(device_index);
  const RelaxedCaptureMode harmless;
  return device >= 0 && helpers.graph_memory != nullptr &&
         helpers.graph_memory(device, kReservedNow, &bytes) == 0;
}

}  // namespace

GraphWalk::~GraphWalk() {
  free(blocks_);
}

// A block that cannot be stored for lack of memory is never freed here.
void GraphWalk::allocates(void* node) {
  Parameters parameters{};
  if (helpers.allocation_node == nullptr || helpers.allocation_node(node, &parameters) != 0) return;
  const std::uint64_t kibibytes =
      parameters.bytes / kKibibyte + (parameters.bytes % kKibibyte == 0 ? 0 : 1);
  now_ += kibibytes;
  if (now_ > peak_) peak_ = now_;
  if (number_ == capacity_) {
    constexpr std::size_t kFirst = 64;
    const std::size_t wanted = capacity_ == 0 ? kFirst : 2 * capacity_;
    auto* larger = static_cast<Block*>(realloc(blocks_, wanted * sizeof(Block)));
    if (larger == nullptr) return;
    blocks_ = larger;
    capacity_ = wanted;
  }
  blocks_[number_++] = {parameters.address, kibibytes};
}

// The block is usually one of the last; frees of other graphs' memory are ignored.
void GraphWalk::frees(void* node) {
  std::uint64_t address = 0;
  if (helpers.free_node == nullptr || helpers.free_node(node, &address) != 0) return;
  for (std::size_t i = number_; i > 0; --i) {
    if (blocks_[i - 1].address != address) continue;
    now_ -= blocks_[i - 1].kibibytes;
    blocks_[i - 1] = blocks_[--number_];
    return;
  }
}

bool reserve_for_graph(std::uint32_t kibibytes, GraphMemory& memory) {
  memory.device_index = current_origin().device_index;
  if (memory.device_index >= kGpuDevices) return true;
  const std::uint64_t wanted = kibibytes * kKibibyte;
  const std::uint64_t have = charged[memory.device_index].load();
  memory.more = wanted > have ? wanted - have : 0;
  if (reserve(memory.device_index, memory.more)) return true;
  count(GpuQuantity::kRefused, memory.more);
  return false;
}

void graph_launched(const GraphMemory& memory, std::uint32_t kibibytes, Result result) {
  if (memory.device_index >= kGpuDevices) return;
  give_back(memory.device_index, memory.more);
  if (result != 0) return;
  std::uint64_t bytes = 0;
  const std::uint64_t wanted = kibibytes * kKibibyte;
  const std::uint64_t have = charged[memory.device_index].load();
  charge(memory.device_index, query_driver(memory.device_index, bytes) && bytes != 0
                                  ? bytes
                                  : (wanted > have ? wanted : have));
}

void forget_graph_memory() {
  for (auto& bytes : charged) bytes.store(0, std::memory_order_relaxed);
}

}  // namespace assay::gpu

extern "C" ASSAY_EXPORTED int cuDeviceGraphMemTrim(int device) {
  ASSAY_REAL(cuDeviceGraphMemTrim);
  const int result = next(device);
  std::uint64_t bytes = 0;
  const std::uint32_t device_index = assay::gpu::device_index_of(device);
  if (result == 0 && device_index < assay::wire::kGpuDevices &&
      assay::gpu::query_driver(device_index, bytes)) {
    assay::gpu::charge(device_index, bytes);
  }
  return result;
}
