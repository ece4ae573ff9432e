// What the words of a memory script (memory_script.h) work on, and the families of them.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace memory {

struct Word {
  std::string label, what;
  std::vector<std::uint64_t> numbers;
  std::string rest;
  [[nodiscard]] std::uint64_t number(std::size_t i) const {
    return i < numbers.size() ? numbers[i] : 0;
  }
};

// Something that was got, how it is freed, and where it was mapped.
struct Got {
  std::uint64_t key = 0, size = 0;
  std::string free;
  std::uint64_t place = 0;
};

struct State {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* context = nullptr;
  void* stream = nullptr;  // the default one, until a word makes another
  void* pool = nullptr;
  void* executable = nullptr;
  std::vector<Got> got;

  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
    return function == nullptr ? -1 : function(arguments...);
  }
};

inline void tell(const Word& word, const char* field, std::uint64_t value) {
  std::printf("%s.%s %llu\n", word.label.c_str(), field, static_cast<unsigned long long>(value));
}

using Words = std::map<std::string, std::function<int(const Word&)>>;
Words allocation_words(State& state);
Words churn_words(State& state);
Words context_words(State& state);
Words graph_words(State& state);
Words process_words();
Words told_words(State& state);

}  // namespace memory
