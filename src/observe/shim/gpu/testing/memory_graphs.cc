// Words that make graphs with memory in them, capture, and launch.
#include <cstring>
#include <thread>

#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

int instantiate(State& state, void* graph) {
  return state.call("cuGraphInstantiateWithFlags", &state.executable, graph, std::uint64_t{0});
}

// CUDA_MEM_ALLOC_NODE_PARAMS: on the first device, so many bytes; `at` is where it begins.
void describe_allocation(unsigned char* at, std::uint64_t bytes) {
  const int properties[4] = {1, 0, 1, 0};  // pinned, no handles, on a device, the first
  std::memcpy(at, &properties[0], sizeof properties);
  std::memcpy(at + 104, &bytes, sizeof bytes);
}

int one_node(State& state, const Word& word) {
  void* graph = nullptr;
  void* node = nullptr;
  unsigned char parameters[256] = {};
  describe_allocation(parameters, word.number(0));
  state.call("cuGraphCreate", &graph, 0U);
  state.call("cuGraphAddMemAllocNode", &node, graph, static_cast<const void*>(nullptr),
             std::size_t{0}, static_cast<void*>(parameters));
  return instantiate(state, graph);
}

// So many blocks, each freed at once; each when the next is there; or none freed.
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

// Made by hand, by the functions that add a node of any kind: blocks that are freed.
int any_nodes(State& state, const Word& word) {
  void* graph = nullptr;
  void* node = nullptr;
  state.call("cuGraphCreate", &graph, 0U);
  const void* none = nullptr;
  for (std::uint64_t i = 0; i < word.number(0); ++i) {
    unsigned char parameters[256] = {10};
    describe_allocation(parameters + 16, word.number(1));
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
int elsewhere(State& state, const Word& word) {
  int result = 0;
  std::thread([&] {
    std::uint64_t address = 0;
    if (state.context != nullptr) state.call("cuCtxSetCurrent", state.context);
    result = state.call("cuMemAllocAsync", &address, static_cast<std::size_t>(word.number(0)),
                        static_cast<void*>(nullptr));
  }).join();
  return result;
}

}  // namespace

Words graph_words(State& state) {
  const auto capture = [&](const Word& word) {
    return captured(state, word.number(0), word.number(1), word.what);
  };
  return {
      {"graph", [&](const Word& word) { return one_node(state, word); }},
      {"capture", [&](const Word& word) { return captured(state, 1, word.number(0), "loop"); }},
      {"loop", capture},
      {"pairs", capture},
      {"hoard", capture},
      {"anynodes", [&](const Word& word) { return any_nodes(state, word); }},
      {"launch",
       [&](const Word&) { return state.call("cuGraphLaunch", state.executable, state.stream); }},
      {"trim", [&](const Word&) { return state.call("cuDeviceGraphMemTrim", 0); }},
      {"begin",
       [&](const Word& word) {
         return state.call("cuStreamBeginCapture_v2", state.stream,
                           static_cast<int>(word.number(0)));
       }},
      {"end",
       [&](const Word&) {
         void* graph = nullptr;
         return state.call("cuStreamEndCapture", state.stream, &graph);
       }},
      // As a thread does that has been told that it is harmless.
      {"relax",
       [&](const Word&) {
         int mode = 2;
         return state.call("cuThreadExchangeStreamCaptureMode", &mode);
       }},
      {"elsewhere", [&](const Word& word) { return elsewhere(state, word); }},
  };
}

}  // namespace memory
