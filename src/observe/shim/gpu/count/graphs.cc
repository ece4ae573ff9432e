// Graphs: nodes are counted at instantiation and added at every launch.
#include <stdlib.h>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/graph_memory.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/pace.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/size_map.h"

namespace assay::gpu {
namespace {

enum NodeType : int { kKernelNode = 0, kGraphNode = 4, kAllocationNode = 10, kFreeNode = 11 };

// CUgraphNodeParams: of an allocation node, which begins at 16, the size is at 104.
struct NodeParameters {
  int type;
  unsigned char before[116];
  std::size_t bytes;
};

// Adds the nodes that do work, including those of child graphs, to `sum`.
void add_nodes(void* graph, SizeMapValue& sum, GraphWalk& walk, int depth) {
  constexpr int kDeepest = 32;
  std::size_t number = 0;
  if (depth > kDeepest || helpers.graph_nodes == nullptr || helpers.node_type == nullptr ||
      helpers.graph_nodes(graph, nullptr, &number) != 0 || number == 0) {
    return;
  }
  auto** nodes = static_cast<void**>(calloc(number, sizeof(void*)));
  if (nodes == nullptr) return;
  if (helpers.graph_nodes(graph, nodes, &number) != 0) number = 0;
  for (std::size_t i = 0; i < number; ++i) {
    int type = -1;
    void* child = nullptr;
    if (nodes[i] == nullptr || helpers.node_type(nodes[i], &type) != 0) continue;
    if (type == kGraphNode && helpers.child_graph != nullptr &&
        helpers.child_graph(nodes[i], &child) == 0) {
      add_nodes(child, sum, walk, depth + 1);
      continue;
    }
    ++sum.size;
    if (type == kKernelNode) ++sum.first;
    if (type == kAllocationNode) walk.allocates(nodes[i]);
    if (type == kFreeNode) walk.frees(nodes[i]);
  }
  free(nodes);
}

// Nodes, kernels among them, and KiB of allocation nodes.
SizeMapValue sum_of_nodes(void* graph) {
  SizeMapValue sum;
  GraphWalk walk;
  add_nodes(graph, sum, walk, 0);
  sum.second = walk.peak();
  return sum;
}

Result made(Result result, void* const* executable, void* graph) {
  if (result != 0 || region() == nullptr || executable == nullptr) return result;
  graphs.insert(reinterpret_cast<std::uint64_t>(*executable), sum_of_nodes(graph));
  return result;
}

template <typename Launch>
Result launched(void* executable, Launch launch) {
  SizeMapValue known;
  graphs.find(reinterpret_cast<std::uint64_t>(executable), known);
  count(GpuQuantity::kGraph, known.size);
  count(GpuQuantity::kGraphKernel, 0, known.first);
  if (known.second == 0) return launch();
  GraphMemory memory;
  if (!reserve_for_graph(known.second, memory)) return kOutOfMemory;
  const Result result = launch();
  graph_launched(memory, known.second, result);
  return result;
}

// Counts an allocation node, whatever function added it.
Result node_added(Result result, const NodeParameters* parameters) {
  if (parameters != nullptr && parameters->type == kAllocationNode) {
    count(result == 0 ? GpuQuantity::kAllocGraph : GpuQuantity::kRefused, parameters->bytes);
  }
  return result;
}

// Paced as a whole: its cost is known per executable graph.
template <typename Call>
Result paced_graph(void* executable, void* stream, bool per_thread, Call call) {
  return paced({cost_place(executable, 0, 0, 0), stream, per_thread}, call);
}

Result captured(Result result, void* const* graph) {
  if (result != 0 || region() == nullptr || graph == nullptr || *graph == nullptr) return result;
  count(GpuQuantity::kCaptured, 0, sum_of_nodes(*graph).first);
  return result;
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::captured;
using assay::gpu::launched;
using assay::gpu::made;
using assay::gpu::node_added;
using assay::gpu::paced_graph;

extern "C" {

ASSAY_EXPORTED int cuGraphInstantiate(void** out, void* graph, void** error, char* log,
                                      std::size_t size) {
  ASSAY_REAL(cuGraphInstantiate);
  return made(next(out, graph, error, log, size), out, graph);
}
ASSAY_EXPORTED int cuGraphInstantiate_v2(void** out, void* graph, void** error, char* log,
                                         std::size_t size) {
  ASSAY_REAL(cuGraphInstantiate_v2);
  return made(next(out, graph, error, log, size), out, graph);
}
ASSAY_EXPORTED int cuGraphInstantiateWithFlags(void** out, void* graph, std::uint64_t flags) {
  ASSAY_REAL(cuGraphInstantiateWithFlags);
  return made(next(out, graph, flags), out, graph);
}
ASSAY_EXPORTED int cuGraphInstantiateWithParams(void** out, void* graph, void* parameters) {
  ASSAY_REAL(cuGraphInstantiateWithParams);
  return made(next(out, graph, parameters), out, graph);
}
ASSAY_EXPORTED int cuGraphInstantiateWithParams_ptsz(void** out, void* graph, void* parameters) {
  ASSAY_REAL(cuGraphInstantiateWithParams_ptsz);
  return made(next(out, graph, parameters), out, graph);
}
ASSAY_EXPORTED int cuGraphExecDestroy(void* executable) {
  ASSAY_REAL(cuGraphExecDestroy);
  assay::gpu::SizeMapValue known;
  assay::gpu::graphs.take(reinterpret_cast<std::uint64_t>(executable), known);
  return next(executable);
}
ASSAY_EXPORTED int cuGraphLaunch(void* executable, void* stream) {
  ASSAY_REAL(cuGraphLaunch);
  return launched(executable, [&] {
    return paced_graph(executable, stream, false, [&] { return next(executable, stream); });
  });
}
ASSAY_EXPORTED int cuGraphLaunch_ptsz(void* executable, void* stream) {
  ASSAY_REAL(cuGraphLaunch_ptsz);
  return launched(executable, [&] {
    return paced_graph(executable, stream, true, [&] { return next(executable, stream); });
  });
}
ASSAY_EXPORTED int cuGraphAddNode(void** node, void* graph, const void* dependencies,
                                  std::size_t number, assay::gpu::NodeParameters* parameters) {
  ASSAY_REAL(cuGraphAddNode);
  return node_added(next(node, graph, dependencies, number, parameters), parameters);
}
ASSAY_EXPORTED int cuGraphAddNode_v2(void** node, void* graph, const void* dependencies,
                                     const void* edges, std::size_t number,
                                     assay::gpu::NodeParameters* parameters) {
  ASSAY_REAL(cuGraphAddNode_v2);
  return node_added(next(node, graph, dependencies, edges, number, parameters), parameters);
}
ASSAY_EXPORTED int cuStreamEndCapture(void* stream, void** graph) {
  ASSAY_REAL(cuStreamEndCapture);
  return captured(next(stream, graph), graph);
}
ASSAY_EXPORTED int cuStreamEndCapture_ptsz(void* stream, void** graph) {
  ASSAY_REAL(cuStreamEndCapture_ptsz);
  return captured(next(stream, graph), graph);
}
}
