// Memory of graphs' allocation nodes.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/wire/gpu_region.h"

namespace assay::gpu {

// Peak memory of a graph's allocation nodes in KiB, if its nodes run in the order of their
// creation.
class GraphWalk {
 public:
  GraphWalk() = default;
  ~GraphWalk();
  GraphWalk(const GraphWalk&) = delete;
  GraphWalk& operator=(const GraphWalk&) = delete;
  void allocates(void* node);
  void frees(void* node);
  [[nodiscard]] std::uint32_t peak() const {
    return peak_ > ~std::uint32_t{0} ? ~std::uint32_t{0} : static_cast<std::uint32_t>(peak_);
  }

 private:
  struct Block {
    std::uint64_t address, kibibytes;
  };
  Block* blocks_ = nullptr;  // allocated and not yet freed
  std::size_t number_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
};
// Before and after the launch of a graph with such nodes on the current device. False: it would
// exceed the limit.
struct GraphMemory {
  std::uint32_t device_index = wire::kGpuDevices;
  std::uint64_t more = 0;  // reserved for this launch
};
bool reserve_for_graph(std::uint32_t kibibytes, GraphMemory& memory);
void graph_launched(const GraphMemory& memory, std::uint32_t kibibytes, Result result);
void forget_graph_memory();

}  // namespace assay::gpu
