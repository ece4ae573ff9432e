// What launch_bench measures: `gpu_launch_load launch THREADS TIMES` or `free BLOCKS TIMES`, over
// whatever library is in front of the driver. Prints nanoseconds of processor time per call of each
// thread (launch), or of a free and of an allocation with BLOCKS blocks live (free). Processor
// time, so that other load matters less.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

extern "C" {
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemFree_v2(std::uint64_t);
}

namespace {

double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Through a pointer, as the CUDA runtime calls.
decltype(cuLaunchKernel)* volatile launch = cuLaunchKernel;
decltype(cuMemAlloc_v2)* volatile allocate = cuMemAlloc_v2;
decltype(cuMemFree_v2)* volatile release = cuMemFree_v2;

double launches(long times) {
  auto* function = launch;
  function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  const double start = now_ns();
  for (long i = 0; i < times; ++i) {
    function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  return (now_ns() - start) / static_cast<double>(times);
}

void frees(std::size_t blocks, long rounds) {
  std::vector<std::uint64_t> live(blocks);
  for (std::uint64_t& address : live) allocate(&address, 512);
  std::mt19937_64 random(1);
  double free_ns = 0;
  double allocate_ns = 0;
  constexpr std::size_t kAtOnce = 1000;
  const std::size_t some = std::min(kAtOnce, blocks);
  for (long round = 0; round < rounds; ++round) {
    // Which ones is not part of the measurement: they are brought to the front first.
    for (std::size_t i = 0; i < some; ++i) {
      std::swap(live[i], live[i + random() % (blocks - i)]);
    }
    double start = now_ns();
    for (std::size_t i = 0; i < some; ++i) release(live[i]);
    free_ns += now_ns() - start;
    start = now_ns();
    for (std::size_t i = 0; i < some; ++i) allocate(&live[i], 512);
    allocate_ns += now_ns() - start;
  }
  const double calls = static_cast<double>(rounds) * static_cast<double>(some);
  std::printf("%.3f %.3f\n", free_ns / calls, allocate_ns / calls);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 64;
  if (::dlsym(RTLD_DEFAULT, "fakecuda_does_nothing") == nullptr) {
    std::fprintf(stderr,
                 "gpu_launch_load: the driver that was loaded is not the one that does nothing; "
                 "take the real one's folder out of LD_LIBRARY_PATH\n");
    return 3;
  }
  const long first = std::strtol(arguments[2], nullptr, 10);
  const long times = std::strtol(arguments[3], nullptr, 10);
  if (std::string(arguments[1]) == "free") {
    frees(static_cast<std::size_t>(first), times);
    return 0;
  }
  if (first == 1) {
    std::printf("%.3f\n", launches(times));
    return 0;
  }
  std::vector<double> each(static_cast<std::size_t>(first));
  std::vector<std::thread> threads;
  std::atomic<long> waiting{first};
  for (double& result : each) {
    threads.emplace_back([&] {
      --waiting;
      while (waiting > 0) {
      }
      result = launches(times);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double result : each) std::printf("%.3f ", result);
  std::printf("\n");
  return 0;
}
