// Actions that create, capture and launch graphs with allocations.
#include <cstring>
#include <thread>

#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

int instantiate(State& state, void* graph) {
  return state.call("cuGraphInstantiateWithFlags", &state.executable, graph, std::uint64_t{0});
}

// CUDA_MEM_ALLOC_NODE_PARAMS: an allocation on the first device; `at` is the struct's address.
void describe_allocation(unsigned char* at, std::uint64_t bytes) {
  const int properties[4] = {1, 0, 1, 0};  // pinned, no handles, on a device, the first
  std::memcpy(at, &properties[0], sizeof properties);
  std::memcpy(at + 104, &bytes, sizeof bytes);
}

int one_node(State& state, const Action& action) {
  void* graph = nullptr;
  void* node = nullptr;
  unsigned char parameters[256] = {};
  describe_allocation(parameters, action.number(0));
  state.call("cuGraphCreate", &graph, 0U);
  state.call("cuGraphAddMemAllocNode", &node, graph, static_cast<const void*>(nullptr),
             std::size_t{0}, static_cast<void*>(parameters));
  return instantiate(state, graph);
}

// Blocks that are each freed at once, freed after the next allocation, or not freed.
int captured(State& state, std::uint64_t blocks, std::size_t bytes, const std::string& how) {
  void* graph = nullptr;
  state.call("cuStreamBeginCapture_v2", state.stream, 0);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    std::uint64_t address = 0;
    state.call("cuMemAllocAsync", &address, bytes, state.stream);
    const std::uint64_t freed = how == "loop" ? address : before;
    if (freed != 0 && how != "hoard") state.call("cuMemFreeAsync", freed, state.stream);
    before = address;
  }
  if (how == "pairs") state.call("cuMemFreeAsync", before, state.stream);
  state.call("cuStreamEndCapture", state.stream, &graph);
  return instantiate(state, graph);
}

// Built with the functions that add a node of any kind: blocks that are freed.
int any_nodes(State& state, const Action& action) {
  void* graph = nullptr;
  void* node = nullptr;
  state.call("cuGraphCreate", &graph, 0U);
  const void* none = nullptr;
  for (std::uint64_t i = 0; i < action.number(0); ++i) {
    unsigned char parameters[256] = {10};
    describe_allocation(parameters + 16, action.number(1));
    if (i % 2 == 0) {
      state.call("cuGraphAddNode", &node, graph, none, std::size_t{0},
                 static_cast<void*>(parameters));
    } else {
      state.call("cuGraphAddNode_v2", &node, graph, none, none, std::size_t{0},
                 static_cast<void*>(parameters));
    }
    std::uint64_t address = 0;
    std::memcpy(&address, parameters + 16 + 112, sizeof address);
    std::memset(parameters, 0, sizeof parameters);
    parameters[0] = 11;
    std::memcpy(parameters + 16, &address, sizeof address);
    state.call("cuGraphAddNode", &node, graph, none, std::size_t{0},
               static_cast<void*>(parameters));
  }
  return instantiate(state, graph);
}

// While this thread captures, another one allocates.
int elsewhere(State& state, const Action& action) {
  int result = 0;
  std::thread([&] {
    std::uint64_t address = 0;
    if (state.context != nullptr) state.call("cuCtxSetCurrent", state.context);
    result = state.call("cuMemAllocAsync", &address, static_cast<std::size_t>(action.number(0)),
                        static_cast<void*>(nullptr));
  }).join();
  return result;
}

}  // namespace

Actions graph_actions(State& state) {
  const auto capture = [&](const Action& action) {
    return captured(state, action.number(0), action.number(1), action.what);
  };
  return {
      {"graph", [&](const Action& action) { return one_node(state, action); }},
      {"capture",
       [&](const Action& action) { return captured(state, 1, action.number(0), "loop"); }},
      {"loop", capture},
      {"pairs", capture},
      {"hoard", capture},
      {"anynodes", [&](const Action& action) { return any_nodes(state, action); }},
      {"launch",
       [&](const Action&) { return state.call("cuGraphLaunch", state.executable, state.stream); }},
      {"trim", [&](const Action&) { return state.call("cuDeviceGraphMemTrim", 0); }},
      {"begin",
       [&](const Action& action) {
         return state.call("cuStreamBeginCapture_v2", state.stream,
                           static_cast<int>(action.number(0)));
       }},
      {"end",
       [&](const Action&) {
         void* graph = nullptr;
         return state.call("cuStreamEndCapture", state.stream, &graph);
       }},
      // As in a thread that declares its calls harmless to captures.
      {"relax",
       [&](const Action&) {
         int mode = 2;
         return state.call("cuThreadExchangeStreamCaptureMode", &mode);
       }},
      {"elsewhere", [&](const Action& action) { return elsewhere(state, action); }},
  };
}

}  // namespace memory
