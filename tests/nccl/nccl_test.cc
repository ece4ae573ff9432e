// The communicator over NCCL with a fake of NCCL and of CUDA, so without a GPU: every call, and
// what happens when a rank is late, hangs, fails or ends. On a GPU: src/comm/cuda/nccl_test.cc.
#include "comm/cuda/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "comm/cuda/testing/device_calls.h"
#include "nccl/fake_cuda.h"
#include "nccl/fake_nccl.h"
#include "nccl/fake_ranks.h"

namespace assay::comm::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Nothing is left behind, whatever happened. Threads of streams end a moment later.
void expect_nothing_left() {
  EXPECT_EQ(fakenccl::communicators_left(), 0);
  EXPECT_EQ(fakecuda::streams_left(), 0);
  EXPECT_EQ(fakecuda::events_left(), 0);
  EXPECT_EQ(fakecuda::allocations_left(), 0);
}

RC_GTEST_PROP(NcclCalls, AreTheirDefinition, (unsigned seed)) {
  const int ranks = *rc::gen::inRange(1, 6);
  const auto lines = run(ranks, [&](Communicator& c) {
    DeviceMemoryOfCalls memory;
    return make_random_calls(c, seed, memory);
  });
  for (const std::string& line : lines) {
    if (line != "ok") RC_FAIL(fmt::format("{}", fmt::join(lines, "; ")));
  }
  RC_ASSERT(fakenccl::communicators_left() == 0);
  RC_ASSERT(fakenccl::aborted() == 0);
}

// All ranks of a ring send before they receive, both ways round.
TEST(NcclNeighbours, SendAndReceiveIndependently) {
  for (const int ranks : {2, 3, 4, 5}) {
    const auto lines = run(ranks, [](Communicator& c) -> base::Result<void> {
      DeviceMemoryOfCalls memory;
      const int next = (c.rank() + 1) % c.ranks();
      const int before = (c.rank() + c.ranks() - 1) % c.ranks();
      for (int round = 0; round < 3; ++round) {
        std::byte* const from = memory.place(Bytes(100, std::byte(c.rank())));
        std::vector<Ticket> tickets;
        std::vector<std::byte*> received;
        for (const int peer : {next, before}) {
          ASSAY_TRY(tickets.emplace_back(),
                    c.issue({CommKind::kSend, 100, ElementType::kU8, 0, peer}, from, nullptr,
                            memory.stream()));
        }
        for (const int peer : {before, next}) {
          received.push_back(memory.place(Bytes(100, kUntouched)));
          ASSAY_TRY(tickets.emplace_back(),
                    c.issue({CommKind::kReceive, 100, ElementType::kU8, 0, peer}, nullptr,
                            received.back(), memory.stream()));
        }
        for (const Ticket ticket : tickets) ASSAY_TRY_VOID(c.wait(ticket));
        if (memory.fetch(received[0], 100) != Bytes(100, std::byte(before)) ||
            memory.fetch(received[1], 100) != Bytes(100, std::byte(next))) {
          return base::fail(base::failed_error("send", "wrong bytes"));
        }
        memory.clear();
      }
      return {};
    });
    EXPECT_THAT(lines, Each("ok")) << ranks;
    expect_nothing_left();
  }
}

TEST(NcclFaults, ARankThatHangsIsBounded) {
  std::atomic<bool> failed = false;
  NcclOptions options;
  options.call_timeout = milliseconds(2'000);
  const auto lines = run(
      2,
      [&](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        ASSAY_TRY_VOID(gather(c, memory, 10));
        if (c.rank() == 1) {
          while (!failed) std::this_thread::sleep_for(milliseconds(1));
          return {};
        }
        auto result = gather(c, memory, 10);
        failed = true;
        return result;
      },
      options);
  EXPECT_EQ(
      lines[0],
      "rank 0: all_gather of 10 u8 has not finished within 2000 ms; another rank hangs or has "
      "ended");
  EXPECT_EQ(lines[1], "ok");
  expect_nothing_left();
}

// The time that the GPU computes before a call does not count.
TEST(NcclFaults, ALongComputationIsNoHang) {
  NcclOptions options;
  options.call_timeout = milliseconds(1'000);
  const auto lines = run(
      2,
      [&](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        fakecuda::enqueue(static_cast<cudaStream_t>(memory.stream().handle),
                          [] { std::this_thread::sleep_for(milliseconds(2'000)); });
        return gather(c, memory, 10);
      },
      options);
  // The ranks reach the call at about the same time; on a busy machine one may be late.
  if (lines[0] != "ok") GTEST_SKIP() << lines[0];
  EXPECT_THAT(lines, Each("ok"));
  expect_nothing_left();
}

// Between a call and waiting for it the host may have other things to do, a checkpoint for example.
TEST(NcclFaults, ACallThatHasFinishedAndIsWaitedForLateIsNoHang) {
  std::atomic<int> issued = 0;
  NcclOptions options;
  options.call_timeout = milliseconds(2'000);
  const auto lines = run(
      2,
      [&](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        std::byte* const buffer = memory.place(Bytes(100));
        const Call call = {CommKind::kAllGather, 10, ElementType::kU8};
        ASSAY_TRY(const Ticket ticket, c.issue(call, buffer, buffer + 20, memory.stream()));
        ++issued;
        while (issued < 2) std::this_thread::sleep_for(milliseconds(1));
        std::this_thread::sleep_for(2 * options.call_timeout);
        ASSAY_TRY_VOID(c.check());
        return c.wait(ticket);
      },
      options);
  EXPECT_THAT(lines, Each("ok"));
  expect_nothing_left();
}

// Both ranks have kernels of several groups in flight: all are aborted at once, or none ends.
TEST(NcclFaults, AnAbortFromAnotherThreadEndsAllGroups) {
  std::atomic<int> waiting = 0;
  const auto lines = run(2, [&](Communicator& c) -> base::Result<void> {
    ASSAY_TRY(const auto other, c.split(0, c.rank()));
    DeviceMemoryOfCalls memory;
    if (c.rank() == 1) {
      while (waiting < 2) std::this_thread::sleep_for(milliseconds(1));
      return {};
    }
    std::byte* const buffer = memory.place(Bytes(100));
    const Call call = {CommKind::kAllGather, 10, ElementType::kU8};
    ASSAY_TRY(const Ticket first, c.issue(call, buffer, buffer + 20, memory.stream()));
    ASSAY_TRY(const Ticket second, other->issue(call, buffer, buffer + 50, memory.stream()));
    std::thread aborts([&] {
      ++waiting;
      std::this_thread::sleep_for(milliseconds(20));
      c.abort(base::failed_error("disk", "is full"));
    });
    // Neither of them waits on the host.
    ASSAY_TRY_VOID(c.wait(first));
    ASSAY_TRY_VOID(other->wait(second));
    memory.fetch(buffer, 1);
    auto result = other->check();
    aborts.join();
    ++waiting;
    return result;
  });
  EXPECT_EQ(lines[0], "disk: is full");
  expect_nothing_left();
}

TEST(NcclFaults, WhatNcclReportsEndsTheWait) {
  const auto lines = run(2, [&](Communicator& c) -> base::Result<void> {
    DeviceMemoryOfCalls memory;
    if (c.rank() == 1) {
      fakenccl::set_error(0, ncclRemoteError);
      return {};
    }
    return gather(c, memory, 10);
  });
  EXPECT_THAT(lines[0], AllOf(StartsWith("rank 0: "), HasSubstr("remote process exited")));
  expect_nothing_left();
}

TEST(NcclFaults, AFailureElsewhereEndsTheWait) {
  std::atomic<bool> elsewhere = false;
  NcclOptions options;
  options.failed = [&]() -> std::optional<base::Error> {
    if (!elsewhere) return std::nullopt;
    return base::failed_error("rank 7", "has no power");
  };
  const auto lines = run(
      2,
      [&](Communicator& c) -> base::Result<void> {
        DeviceMemoryOfCalls memory;
        if (c.rank() == 0) return gather(c, memory, 10);
        std::this_thread::sleep_for(milliseconds(50));
        elsewhere = true;
        return {};
      },
      options);
  EXPECT_EQ(lines[0], "rank 7: has no power");
  expect_nothing_left();
}

TEST(NcclFaults, ConnectingIsBounded) {
  fakenccl::reset();
  Values values;
  NcclOptions options;
  options.ranks = 2;  // of which one comes
  options.first_bytes = 1'000;
  options.connect_timeout = milliseconds(200);
  const auto world = connect_nccl(fake(), options, values);
  ASSERT_FALSE(world.has_value());
  EXPECT_THAT(world.error().line(),
              StartsWith("rank 0: connecting 2 ranks with NCCL has not finished within 200 ms"));
  options.rank = 1;
  Values empty;
  EXPECT_FALSE(connect_nccl(fake(), options, empty).has_value());
  expect_nothing_left();
}

TEST(NcclFaults, SplittingIsBounded) {
  std::atomic<bool> failed = false;
  NcclOptions options;
  options.connect_timeout = milliseconds(4'000);
  const auto lines = run(
      2,
      [&](Communicator& c) -> base::Result<void> {
        if (c.rank() == 1) {
          while (!failed) std::this_thread::sleep_for(milliseconds(1));
          return {};
        }
        auto made = c.split(0, 0);
        failed = true;
        return made.map([](const auto&) {});
      },
      options);
  EXPECT_THAT(lines[0], StartsWith("rank 0: making a group of ranks with NCCL has not finished"));
  expect_nothing_left();
}

TEST(NcclFaults, AnEndThatHangsBecomesAnAbort) {
  const auto lines = run(2, [&](Communicator& c) -> base::Result<void> {
    DeviceMemoryOfCalls memory;
    ASSAY_TRY_VOID(gather(c, memory, 10));
    fakenccl::hang_in_finalize(true);
    return {};
  });
  EXPECT_THAT(lines, Each("ok"));
  EXPECT_GT(fakenccl::aborted(), 0);
  expect_nothing_left();
}

TEST(NcclFaults, WhatCannotBeDoneIsRefused) {
  const auto lines = run(2, [](Communicator& c) -> base::Result<void> {
    std::byte data[8] = {};
    EXPECT_FALSE(c.wait({77}).has_value());
    EXPECT_FALSE(c.broadcast(data, 4, ElementType::kU8, 2).has_value());
    const auto refused = c.issue({CommKind::kAllToAllV}, data, data, {}, {.on_device = true});
    EXPECT_FALSE(refused.has_value());
    return refused.map([](Ticket) {});
  });
  EXPECT_THAT(lines, Each(HasSubstr("NCCL needs them on the host")));
  expect_nothing_left();
}

}  // namespace
}  // namespace assay::comm::testing
