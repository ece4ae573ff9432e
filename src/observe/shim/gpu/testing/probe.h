// Shared by the probe's sources: the driver as programs find it, and output for the tests.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace probe {

inline void* driver = nullptr;

// Exits if there is none.
void* open_driver();

template <typename Signature>
Signature* symbol(const char* name) {
  return reinterpret_cast<Signature*>(::dlsym(driver, name));
}

using GetProcAddress = int(const char*, void**, int, std::uint64_t);
using GetProcAddress2 = int(const char*, void**, int, std::uint64_t, int*);
using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);

// Found as the CUDA runtime does.
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

void print(const char* what, unsigned long number);
// Prints the driver's call counts.
void print_calls(std::initializer_list<const char*> symbols);

// probe_lookups.cc: how functions are found.
int lookups(const char* file, const std::string& form, const std::string& loader);
int symbols(const char* file, const std::string& loader);
int everything(const char* file);
int no_driver();
int weak_symbols();
int other_names();

// probe_processes.cc: threads and processes that start and end.
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
int queued_behind_long_kernel(long launches);
int nccl();

// probe_matmuls.cc
int matmuls(const std::vector<std::string>& arguments);

// probe_share.cc: work in turn with other programs.
//
// KIND BEGIN WINDOW WINDOWS KERNELS…: launches kernels of the given microseconds in turn
// (FAKECUDA_LAUNCH_NS is a microsecond), in windows of WINDOW milliseconds from BEGIN on
// (CLOCK_MONOTONIC, in milliseconds), and prints the GPU time it got in each window and the
// window's length, in microseconds. KIND: launch, ex, cooperative, graph, threads (two of them),
// sync (waits for each kernel), onegrid (their grids are the same) or copies (of 300 KiB, one after
// each kernel).
int share(void* library, const std::vector<std::string>& arguments);

}  // namespace probe
