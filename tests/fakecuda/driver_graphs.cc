// Launches, graphs and stream captures.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "clock.h"
#include "driver_captures.h"

using namespace fakecuda;

namespace fakecuda {

std::atomic<std::uint64_t> nodes_run{0};

int add_node(void** node, void* graph, int type, Graph* child, std::uint64_t bytes,
             std::uint64_t blocks, std::uint64_t address, std::uint64_t ns) {
  auto* added = new Node{type, child, bytes, blocks, address, ns};
  static_cast<Graph*>(graph)->nodes.push_back(added);
  if (node != nullptr) *node = added;
  return kOk;
}

}  // namespace fakecuda

namespace {

void run_kernels(std::uint64_t blocks) {
  if (driver().launch_ns != 0) fakecuda::submit(blocks * driver().launch_ns);
  if (driver().launch_host_ns == 0) return;
  for (const std::uint64_t begun = fakecuda::now_ns();
       fakecuda::now_ns() - begun < driver().launch_host_ns;) {
  }
}

// Freed memory is available to the next node: nodes run one after the other here.
void add_up(const Graph& graph, Executable& sum, std::map<std::uint64_t, std::uint64_t>& live) {
  for (const Node* node : graph.nodes) {
    if (node->type == 4 && node->child != nullptr) {
      add_up(*node->child, sum, live);
      continue;
    }
    ++sum.nodes;
    sum.blocks += node->type == 0 ? node->blocks : 0;
    sum.copies_ns += node->ns;
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
  if (graph->copies_ns != 0) fakecuda::submit(graph->copies_ns);
  return kOk;
}

}  // namespace

extern "C" {

#define LAUNCH(symbol)                                                                        \
  int symbol(void*, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned depth) { \
    count(k_##symbol);                                                                        \
    return launch(std::uint64_t{x} * y * z * (depth == 0 ? 1 : depth));                       \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH(cuLaunchCooperativeKernel)
LAUNCH(cuLaunchCooperativeKernel_ptsz)
#define LAUNCH_EX(symbol)                                                                 \
  int symbol(const unsigned* grid) {                                                      \
    count(k_##symbol);                                                                    \
    const bool timed = driver().launch_ns != 0; /* else the grid may be missing */        \
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
// CUgraphNodeParams: the type, and its parameters from 16 on.
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
}
