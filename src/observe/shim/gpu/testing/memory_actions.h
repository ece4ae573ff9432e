// The state that the actions of a memory script (memory_script.h) work on, and the groups of
// actions.
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

using Actions = std::map<std::string, std::function<int(const Action&)>>;
Actions allocation_actions(State& state);
Actions churn_actions(State& state);
Actions context_actions(State& state);
Actions graph_actions(State& state);
Actions process_actions();
Actions query_actions(State& state);

}  // namespace memory
