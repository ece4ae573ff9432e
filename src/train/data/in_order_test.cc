#include "train/data/in_order.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace assay::data {
namespace {

// The squares of the first `count` numbers, computed by `workers` threads; nothing on an error.
std::vector<int> squares_in_order(unsigned workers, int count) {
  std::atomic<bool> stop = false;
  std::vector<int> taken;
  int next = 0;
  const InOrder<int, int> steps{.read = [&]() -> base::Result<std::optional<int>> {
                                  if (next == count) return std::nullopt;
                                  return std::optional(next++);
                                },
                                .work = [](unsigned, int item) { return item * item; },
                                .take = [&](int output) -> base::Result<void> {
                                  taken.push_back(output);
                                  return {};
                                }};
  return run_in_order(workers, steps, stop) ? taken : std::vector<int>{};
}

std::vector<int> squares_below(int count) {
  std::vector<int> list;
  for (int i = 0; i < count; ++i) list.push_back(i * i);
  return list;
}

TEST(InOrder, TakesResultsInTheOrderOfItems) {
  for (const unsigned workers : {1U, 3U, 16U})
    EXPECT_EQ(squares_in_order(workers, 1000), squares_below(1000));
  EXPECT_TRUE(squares_in_order(2, 0).empty());
}

// Runs in a process with memory for only `threads` more stacks, which are larger than those that
// earlier threads have left for reuse.
int exit_code_with_room_for(int threads) {
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  ::alarm(30);  // rather than waiting for ever
  constexpr std::size_t kStack = std::size_t{64} << 20U;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) +
                       static_cast<rlim_t>(threads) * kStack + kStack / 2;
  const rlimit limit{bytes, bytes};
  if (::pthread_setattr_default_np(&attributes) != 0) ::_exit(3);
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
  const std::vector<int> found = squares_in_order(64, 1000);
  ::_exit(found.empty() ? 2 : found == squares_below(1000) ? 0 : 1);
}

TEST(InOrder, FewerThreadsThanWantedDoTheWork) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space themselves";
#endif
  EXPECT_EQ(exit_code_with_room_for(5), 0);
  EXPECT_EQ(exit_code_with_room_for(0), 2);  // an error
}

}  // namespace
}  // namespace assay::data
