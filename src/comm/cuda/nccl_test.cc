// Communicators over NCCL: two processes that share a GPU and pretend to be two machines. The test
// process itself does not touch the GPU, because forked children could not use it then.
#include "comm/cuda/nccl.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "comm/cuda/events.h"
#include "comm/cuda/nccl_job.h"
#include "comm/cuda/testing/device_calls.h"
#include "comm/testing/rank_processes.h"

namespace assay::comm::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Body = std::function<base::Result<void>(Communicator&)>;

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/dev/nvidiactl", R_OK) != 0) GTEST_SKIP() << "there is no GPU";
  }

  static std::vector<std::string> run(const Body& body,
                                      milliseconds call_timeout = milliseconds(60'000)) {
    return run_processes(
        {.ranks = 2,
         .body = body,
         .connect = [&](int rank, KeyValue& store) -> base::Result<std::unique_ptr<Communicator>> {
           ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
           ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
           ::setenv("NCCL_NVLS_ENABLE", "0", 0);
           NcclOptions options;
           options.rank = rank;
           options.ranks = 2;
           options.call_timeout = call_timeout;
           ASSAY_TRY(auto world, connect_nccl(options, store));
           ASSAY_TRY_VOID(world->connect_neighbours());
           return world;
         },
         .may_leave = true});
  }
};

TEST_F(Nccl, RandomCallsAreTheirDefinition) {
  const auto lines = run([](Communicator& c) -> base::Result<void> {
    DeviceMemoryOfCalls memory;
    for (unsigned seed = 1; seed <= 8; ++seed) {
      ASSAY_TRY_VOID(make_random_calls(c, seed, memory));
    }
    return {};
  });
  EXPECT_THAT(lines, Each("ok"));
}

// Larger than what NCCL buffers: each rank sends before it receives.
TEST_F(Nccl, SendsDoNotWaitForReceives) {
  const auto lines = run([](Communicator& c) -> base::Result<void> {
    DeviceMemoryOfCalls memory;
    constexpr std::int64_t kBytes = std::int64_t{64} << 20U;
    const Bytes mine(kBytes, std::byte(c.rank() + 1));
    std::byte* const from = memory.place(mine);
    std::byte* const to = memory.place(mine);
    const int peer = 1 - c.rank();
    ASSAY_TRY(const Ticket sent, c.issue({CommKind::kSend, kBytes, ElementType::kU8, 0, peer}, from,
                                         nullptr, memory.stream()));
    ASSAY_TRY(const Ticket received,
              c.issue({CommKind::kReceive, kBytes, ElementType::kU8, 0, peer}, nullptr, to,
                      memory.stream()));
    ASSAY_TRY_VOID(c.wait(received));
    ASSAY_TRY_VOID(c.wait(sent));
    if (memory.fetch(to, kBytes) == Bytes(kBytes, std::byte(peer + 1))) return {};
    return base::fail(base::failed_error("send", "wrong bytes"));
  });
  EXPECT_THAT(lines, Each("ok"));
}

TEST_F(Nccl, WhatCannotBeDoneIsRefused) {
  const auto lines = run([](Communicator& c) -> base::Result<void> {
    std::byte data[8] = {};
    EXPECT_FALSE(c.wait({77}).has_value());
    EXPECT_FALSE(c.broadcast(data, 4, ElementType::kU8, 2).has_value());
    const auto refused = c.issue({CommKind::kAllToAllV}, data, data, {}, {.on_device = true});
    if (refused || HasFailure()) return base::fail(base::failed_error("rank", "was not refused"));
    return base::fail(refused.error());
  });
  EXPECT_THAT(lines, Each(HasSubstr("NCCL needs them on the host")));
}

TEST_F(Nccl, AKilledRankIsNoticed) {
  const auto begun = std::chrono::steady_clock::now();
  const auto lines = run(
      [](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        for (int i = 0;; ++i) {
          if (c.rank() == 1 && i == 3) ::raise(SIGKILL);
          ASSAY_TRY_VOID(gather(c, memory, 1U << 20U));
        }
      },
      milliseconds(20'000));
  EXPECT_EQ(lines[1], "killed by signal 9");
  EXPECT_THAT(lines[0], StartsWith("rank 0: "));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(100));
}

TEST_F(Nccl, ARankThatHangsIsBounded) {
  SharedMemory shared;
  const auto lines = run(
      [&](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        ASSAY_TRY_VOID(gather(c, memory, 1000));
        if (c.rank() == 1) {
          shared.await(0, 1);
          return {};
        }
        auto failed = gather(c, memory, 1000);
        shared.flag(0) = 1;
        return failed;
      },
      milliseconds(1'000));
  EXPECT_THAT(lines[0], AllOf(StartsWith("rank 0: "), HasSubstr("within 1000 ms")));
  EXPECT_EQ(lines[1], "ok");
}

TEST_F(Nccl, AnAbortFromAnotherThreadEndsTheWait) {
  SharedMemory shared;
  const auto lines = run([&](Communicator& c) -> base::Result<void> {
    DeviceMemoryOfCalls memory;
    if (c.rank() == 1) {
      shared.await(0, 1);
      return {};
    }
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(200));
      c.abort(base::failed_error("disk", "is full"));
    });
    auto failed = gather(c, memory, 1000);
    other.join();
    shared.flag(0) = 1;
    return failed;
  });
  EXPECT_EQ(lines[0], "disk: is full");
}

// Without a GPU.
TEST(NcclLibraryOnly, IsNamedWhereItIsMissing) {
  if (void* const found = ::dlopen("libnccl.so.2", RTLD_NOW); found != nullptr) {
    ::dlclose(found);
    GTEST_SKIP() << "NCCL is installed";
  }
  SharedMemory store;
  const auto connected = connect_nccl({.rank = 0, .ranks = 2}, store);
  ASSERT_FALSE(connected.has_value());
  EXPECT_THAT(connected.error().line(),
              AllOf(StartsWith("libnccl.so.2: "), HasSubstr("nvidia-nccl-cu13")));
}

TEST(RunBounded, WaitsForAllAndNoLonger) {
  const auto done = std::make_shared<std::atomic<int>>(0);
  const auto count = [done] { ++*done; };
  run_bounded({count, count, count}, std::chrono::minutes(1));
  EXPECT_EQ(*done, 3);
  const auto ends = std::make_shared<std::atomic<bool>>(false);
  run_bounded({count,
               [done, ends] {
                 while (!*ends) std::this_thread::sleep_for(milliseconds(1));
                 ++*done;
               }},
              milliseconds(50));
  *ends = true;
  while (*done < 5) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace
}  // namespace assay::comm::testing
