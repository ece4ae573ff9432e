// What the parts of the probe share: the driver as programs find it, and lines for the test to
// read.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace probe {

inline void* driver = nullptr;

// Ends the program if there is none.
void* open_driver();

template <typename Signature>
Signature* symbol(const char* name) {
  return reinterpret_cast<Signature*>(::dlsym(driver, name));
}

using GetProcAddress = int(const char*, void**, int, std::uint64_t);
using GetProcAddress2 = int(const char*, void**, int, std::uint64_t, int*);
using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);

// As the CUDA runtime does it.
template <typename Signature>
Signature* entry(const char* name, int version, std::uint64_t flags = 0) {
  auto* get = symbol<GetProcAddress2>("cuGetProcAddress_v2");
  void* found = nullptr;
  int status = -1;
  if (get(name, &found, version, flags, &status) != 0) return nullptr;
  return reinterpret_cast<Signature*>(found);
}

Launch* find_launch();
void launch(Launch* function, long times);

void tell(const char* what, unsigned long number);
// What the driver counted.
void tell_calls(std::initializer_list<const char*> symbols);

// probe_lookups.cc: how functions are found.
int lookups(const char* file, const std::string& form, const std::string& loader);
int symbols(const char* file, const std::string& loader);
int everything(const char* file);
int no_driver();
int weak_symbols();
int other_names();

// probe_processes.cc: threads and processes that come and go.
int threads(long count, long launches);
int churn(long count);
int late_thread(long launches);
int forks(long children, long launches);
int execs(char** arguments, long left);
int until_killed(long launches);
int closes_everything(long launches);
int closes_and_forks(long launches, const char* file);
int at_exit();
int reload(long times);

// probe_work.cc: kinds of work.
int every_kind();
int allocations();
int many_blocks(long blocks);
int graphs(long launches);
int capture();
int paced(long launches, const char* symbol_name);
int behind_a_long_one(long launches);
int nccl();

// probe_matmuls.cc
int matmuls(const std::vector<std::string>& words);

}  // namespace probe
