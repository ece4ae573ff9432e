// Actions in which several threads allocate and free concurrently.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

// Two threads that allocate single bytes for some milliseconds, then free them.
int beside(State& state, const Action& action) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(action.number(0));
  for (int i = 0; i < 2; ++i) {
    std::thread([&state, until] {
      std::vector<std::uint64_t> got;
      while (Clock::now() < until) {
        state.call("cuMemAlloc_v2", &got.emplace_back(), std::size_t{1});
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      for (const std::uint64_t address : got) state.call("cuMemFree_v2", address);
    }).detach();
  }
  return 0;
}

// One of four threads: allocates and frees at random; some allocations are refused.
void churn_one(unsigned seed, const Action& action,
               const std::function<int(std::uint64_t&, std::size_t)>& get,
               const std::function<void(std::uint64_t)>& free,
               const std::function<void(std::uint64_t)>& after) {
  std::minstd_rand random(seed);
  std::vector<std::uint64_t> live;
  for (std::uint64_t i = 0; i < action.number(0); ++i) {
    std::uint64_t address = 0;
    if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
      free(live.back());
      live.pop_back();
    } else if (get(address, 1 + random() % action.number(1)) == 0) {
      live.push_back(address);
    }
    after(i);
  }
  for (const std::uint64_t address : live) free(address);
}

int churn(State& state, const Action& action) {
  const auto get = [&](std::uint64_t& address, std::size_t size) {
    return state.call("cuMemAlloc_v2", &address, size);
  };
  const auto free = [&](std::uint64_t address) { state.call("cuMemFree_v2", address); };
  std::vector<std::jthread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      churn_one(seed + static_cast<unsigned>(::getpid()), action, get, free, [](std::uint64_t) {});
    });
  }
  return 0;
}

// The same from the device's pool; prints the peak use of the device.
int churn_pool(State& state, const Action& action) {
  auto* used = reinterpret_cast<unsigned long (*)(int)>(::dlsym(state.driver, "fakecuda_used"));
  if (used == nullptr) return -1;
  std::atomic<std::uint64_t> most{0};
  const auto get = [&](std::uint64_t& address, std::size_t size) {
    return state.call("cuMemAllocAsync", &address, size, state.stream);
  };
  const auto free = [&](std::uint64_t address) {
    state.call("cuMemFreeAsync", address, state.stream);
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      churn_one(seed, action, get, free, [&, seed](std::uint64_t i) {
        if (i % 64 == seed) state.call("cuCtxSynchronize", state.stream);
        const std::uint64_t now = used(0);
        for (std::uint64_t was = most; was < now && !most.compare_exchange_weak(was, now);) {
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  print(action, "most", most);
  return 0;
}

}  // namespace

Actions churn_actions(State& state) {
  return {
      {"beside", [&](const Action& action) { return beside(state, action); }},
      {"churn", [&](const Action& action) { return churn(state, action); }},
      {"churnpool", [&](const Action& action) { return churn_pool(state, action); }},
  };
}

}  // namespace memory
