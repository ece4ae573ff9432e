// Allocation nodes of graphs. Their memory is there from the first launch on, and is kept for later
// launches, of other graphs as well, until it is trimmed. So a launch reserves what its graph wants
// beyond what graphs have already, and afterwards the driver says how much they have.
#include "observe/shim/gpu/limits.h"

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

constexpr std::uint64_t kKibibyte = 1024;
// What graphs of this process have been charged for, by device.
constinit std::atomic<std::uint64_t> charged[kGpuDevices] = {};

// CUDA_MEM_ALLOC_NODE_PARAMS: the size is at 104. With room for what later versions may add.
struct Parameters {
  unsigned char before[104];
  std::size_t bytes;
  unsigned char after[144];
};

void charge(std::uint32_t line, std::uint64_t bytes) {
  const std::uint64_t before = charged[line].exchange(bytes);
  if (bytes > before) add_anyway(line, bytes - before);
  if (bytes < before) give_back(line, before - bytes);
}

// False: it does not say.
bool ask_driver(std::uint32_t line, std::uint64_t& bytes) {
  constexpr int kReservedNow = 2;  // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
  const int device = ordinal_of(line);
  return device >= 0 && helpers.graph_memory != nullptr &&
         helpers.graph_memory(device, kReservedNow, &bytes) == 0;
}

}  // namespace

std::uint32_t kibibytes_of_node(void* node) {
  Parameters parameters{};
  if (helpers.allocation_node == nullptr || helpers.allocation_node(node, &parameters) != 0) {
    return 0;
  }
  const std::uint64_t rounded = (parameters.bytes + kKibibyte - 1) / kKibibyte;
  return rounded > 0xFFFF'FFFF ? 0xFFFF'FFFF : static_cast<std::uint32_t>(rounded);
}

bool reserve_for_graph(std::uint32_t kibibytes, GraphMemory& memory) {
  memory.line = current_place().line;
  if (memory.line >= kGpuDevices) return true;
  const std::uint64_t wanted = kibibytes * kKibibyte;
  const std::uint64_t have = charged[memory.line].load();
  memory.more = wanted > have ? wanted - have : 0;
  if (reserve(memory.line, memory.more)) return true;
  count(GpuQuantity::kRefused, memory.more);
  return false;
}

void graph_launched(const GraphMemory& memory, std::uint32_t kibibytes, Result result) {
  if (memory.line >= kGpuDevices) return;
  give_back(memory.line, memory.more);
  if (result != 0) return;
  std::uint64_t bytes = 0;
  const std::uint64_t wanted = kibibytes * kKibibyte;
  const std::uint64_t have = charged[memory.line].load();
  charge(memory.line,
         ask_driver(memory.line, bytes) && bytes != 0 ? bytes : (wanted > have ? wanted : have));
}

void forget_graph_memory() {
  for (auto& bytes : charged) bytes.store(0, std::memory_order_relaxed);
}

}  // namespace assay::gpu

extern "C" ASSAY_EXPORTED int cuDeviceGraphMemTrim(int device) {
  ASSAY_REAL(cuDeviceGraphMemTrim);
  const int result = next(device);
  std::uint64_t bytes = 0;
  const std::uint32_t line = assay::gpu::line_of(device);
  if (result == 0 && line < assay::wire::kGpuDevices && assay::gpu::ask_driver(line, bytes)) {
    assay::gpu::charge(line, bytes);
  }
  return result;
}
