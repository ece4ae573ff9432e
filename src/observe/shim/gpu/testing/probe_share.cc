// Keeps the fake GPU busy, for tests of shares.
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>

#include "observe/shim/gpu/testing/probe.h"

namespace probe {
namespace {

struct Config {
  unsigned grid[3], block[3], bytes;
  void* stream;
  void* attributes;
  unsigned number;
};

std::uint64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

template <typename Signature>
Signature* found(void* library, const char* name) {
  return reinterpret_cast<Signature*>(::dlsym(library, name));
}

// A function that launches one kernel of the given microseconds.
std::function<void(unsigned)> launcher(void* library, const std::string& kind) {
  if (kind == "ex") {
    auto* launch = found<int(const Config*, void*, void**, void**)>(library, "cuLaunchKernelEx");
    return [=](unsigned us) {
      const Config config = {{us, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, 0};
      launch(&config, nullptr, nullptr, nullptr);
    };
  }
  if (kind == "graph") {
    void* graph = nullptr;
    void* executable = nullptr;
    found<int(void**, unsigned)>(library, "cuGraphCreate")(&graph, 0);
    for (int i = 0; i < 100; ++i) {  // 100 microseconds in all
      found<int(void**, void*, const void*, std::size_t, const void*)>(
          library, "cuGraphAddKernelNode_v2")(nullptr, graph, nullptr, 0, nullptr);
    }
    found<int(void**, void*, std::uint64_t)>(library, "cuGraphInstantiateWithFlags")(&executable,
                                                                                     graph, 0);
    auto* launch = found<int(void*, void*)>(library, "cuGraphLaunch");
    return [=](unsigned) { launch(executable, nullptr); };
  }
  if (kind == "copy" || kind == "set") {  // MiB
    auto* copy = found<int(std::uint64_t, std::uint64_t, std::size_t, void*)>(
        library, kind == "copy" ? "cuMemcpyDtoDAsync_v2" : "cuMemsetD8Async");
    return [=](unsigned mebibytes) { copy(0, 0, std::size_t{mebibytes} << 20U, nullptr); };
  }
  auto* launch = found<Launch>(
      library, kind == "cooperative" ? "cuLaunchCooperativeKernel" : "cuLaunchKernel");
  auto* synchronise = found<int()>(library, "cuCtxSynchronize");
  using Copy = int(std::uint64_t, const void*, std::size_t, void*);
  auto* copy = found<Copy>(library, "cuMemcpyHtoDAsync_v2");
  return [=](unsigned us) {
    const bool one_grid = kind == "onegrid";
    launch(nullptr, one_grid ? 1 : us, 1, 1, 1, 1, one_grid ? us : 1, 0, nullptr, nullptr, nullptr);
    if (kind == "sync") synchronise();
    if (kind == "copies") copy(0, nullptr, std::size_t{300} << 10U, nullptr);
  };
}

}  // namespace

int share(void* library, const std::vector<std::string>& arguments) {
  const std::string kind = arguments.at(0);
  const std::uint64_t begin = std::stoull(arguments.at(1));
  const std::uint64_t window = std::stoull(arguments.at(2));
  const std::uint64_t windows = std::stoull(arguments.at(3));
  const std::vector<std::string> kernels(arguments.begin() + 4, arguments.end());
  auto* busy_ns = found<unsigned long()>(library, "fakecuda_busy_ns");
  std::atomic<bool> over{false};
  const auto work = [&] {
    const auto launch = launcher(library, kind);
    // Bounded as in the driver, whose queue holds about a thousand launches.
    for (std::size_t i = 0; !over; ++i) {
      launch(static_cast<unsigned>(std::stoul(kernels[i % kernels.size()])));
      if (i % 512 == 511) found<int()>(library, "cuCtxSynchronize")();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < (kind == "threads" ? 2 : 1); ++i) threads.emplace_back(work);
  std::uint64_t before = 0;
  std::uint64_t since = 0;
  for (std::uint64_t i = 0; i <= windows; ++i) {
    while (now_us() < 1000 * (begin + i * window)) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    // Both read at the same time, however busy the machine is.
    std::uint64_t now = 0;
    std::uint64_t sum = 0;
    do {
      now = now_us();
      sum = busy_ns() / 1000;
    } while (now_us() > now + 1000);
    if (i > 0) std::printf("busy%lu %lu\nspan%lu %lu\n", i - 1, sum - before, i - 1, now - since);
    before = sum;
    since = now;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  found<int()>(library, "cuCtxSynchronize")();
  std::printf("ever %lu\n", busy_ns());
  std::fflush(stdout);
  return 0;
}

}  // namespace probe
