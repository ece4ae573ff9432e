// `gpu_probe memory ACTION…`: executes actions on memory in order, over the fake driver or a real
// one (tests/gpu/memory). An action is [LABEL=]NAME[:NUMBER…]; its result is printed if it has a
// label.
//
//   alloc:N managed:N async:N fromnew:N pitch:W:H array:N array3d:N mipmap:W:LEVELS
//   create:N[:DEVICE]
//       allocate; allocations are numbered from 0 in the order of these actions
//   free:I  map:I  unmap:I  retain:I   on the I-th allocation
//   ctx destroy primary release reset module device:N stream spin:MS sync
//   info infonull total:DEVICE nvml:I nvml2:I     memory queries of the program
//   graph:N capture:N launch trim      a graph with an allocation, its launch
//   loop:TIMES:N pairs:TIMES:N hoard:TIMES:N anynodes:TIMES:N
//       a graph with several: one at a time, two at a time, all at once; built node by node
//   begin:MODE end relax elsewhere:N   captures, and what may invalidate them
//   churn:ROUNDS:MOST churnpool:ROUNDS:MOST       allocate and free at random, from four threads
//   shell:NAME exec:NAME bury:NAME     run the command in variable NAME; exec it; run it and leave
//   it
//                                      as a zombie
//   fork kill exit sleep:MS
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace memory {

struct Action {
  std::string label, what;
  std::vector<std::uint64_t> numbers;
  std::string rest;
  [[nodiscard]] std::uint64_t number(std::size_t i) const {
    return i < numbers.size() ? numbers[i] : 0;
  }
};

// An allocation, how it is freed, and where it was mapped.
struct Got {
  std::uint64_t key = 0, size = 0;
  std::string free;
  std::uint64_t place = 0;
};

// What the actions work on.
struct State {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* context = nullptr;
  void* stream = nullptr;  // the default one until the action `stream`
  void* pool = nullptr;
  void* executable = nullptr;
  std::vector<Got> got;

  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
    return function == nullptr ? -1 : function(arguments...);
  }
};

inline void print(const Action& action, const char* field, std::uint64_t value) {
  std::printf("%s.%s %llu\n", action.label.c_str(), field, static_cast<unsigned long long>(value));
}

// The actions by name; each memory_*.cc has a group of them.
using Actions = std::map<std::string, std::function<int(const Action&)>>;
Actions allocation_actions(State& state);
Actions churn_actions(State& state);
Actions context_actions(State& state);
Actions graph_actions(State& state);
Actions process_actions();
Actions query_actions(State& state);

}  // namespace memory

int memory_script(int count, char** actions);
