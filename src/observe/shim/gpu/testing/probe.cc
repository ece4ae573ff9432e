// The program that tests run under the library, with the fake driver: `gpu_probe WHAT …`. It finds
// the driver as programs do, uses it, and prints what the driver counted, one "name number" per
// line; the tests compare that with the region.
#include "observe/shim/gpu/testing/probe.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "observe/shim/gpu/testing/memory_script.h"

namespace probe {

void* open_driver() {
  driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(2);
  }
  return driver;
}

Launch* find_launch() {
  return entry<Launch>("cuLaunchKernel", 4000);
}

void launch(Launch* function, long times) {
  for (long i = 0; i < times; ++i) {
    function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
}

void print(const char* what, unsigned long number) {
  std::printf("%s %lu\n", what, number);
  std::fflush(stdout);
}

void print_calls(std::initializer_list<const char*> symbols) {
  auto* calls = symbol<unsigned long(const char*)>("fakecuda_calls");
  for (const char* name : symbols) print(name, calls(name));
}

}  // namespace probe

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  const auto text = [&](int i) { return i < count ? arguments[i] : const_cast<char*>(""); };
  const auto number = [&](int i) { return std::strtol(text(i), nullptr, 10); };
  using namespace probe;
  const std::map<std::string, std::function<int()>> actions = {
      {"lookups", [&] { return lookups(text(2), text(3), text(4)); }},
      {"symbols", [&] { return symbols(text(2), text(3)); }},
      {"everything", [&] { return everything(text(2)); }},
      {"no_driver", no_driver},
      {"weak_symbols", weak_symbols},
      {"other_names", other_names},
      {"threads", [&] { return threads(number(2), number(3)); }},
      {"churn", [&] { return churn(number(2)); }},
      {"late_thread", [&] { return late_thread(number(2)); }},
      {"forks", [&] { return forks(number(2), number(3)); }},
      {"execs", [&] { return execs(arguments, number(2)); }},
      {"until_killed", [&] { return until_killed(number(2)); }},
      {"closes_everything", [&] { return closes_everything(number(2)); }},
      {"closes_and_forks", [&] { return closes_and_forks(number(2), text(3)); }},
      {"at_exit", at_exit},
      {"reload", [&] { return reload(number(2)); }},
      {"every_kind", every_kind},
      {"allocations", allocations},
      {"many_blocks", [&] { return many_blocks(number(2)); }},
      {"graphs", [&] { return graphs(number(2)); }},
      {"capture", capture},
      {"nccl", nccl},
      {"matmuls",
       [&] { return matmuls(std::vector<std::string>(arguments + 2, arguments + count)); }},
      {"memory", [&] { return memory_script(count - 2, arguments + 2); }},
      {"queued_behind_long_kernel", [&] { return queued_behind_long_kernel(number(2)); }},
      {"paced", [&] { return paced(number(2), text(3)); }},
      {"share",
       [&] {
         return share(open_driver(), std::vector<std::string>(arguments + 2, arguments + count));
       }},
  };
  const auto action = actions.find(what);
  if (action == actions.end()) {
    std::fprintf(stderr, "gpu_probe: what?\n");
    return 64;
  }
  return action->second();
}
