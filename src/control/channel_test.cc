// Well-behaved ranks: joining, keys, barriers, progress, leaving, over real sockets.
#include "control/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <filesystem>

#include "control/testing/ranks.h"

namespace assay::control {
namespace {

using namespace std::chrono_literals;  // NOLINT
using testing::enter_all;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Job;
using testing::joined;
using testing::leave_all;
using testing::together;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

std::size_t running_threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

TEST(Channel, JoinsExchangesAndLeavesNothingBehind) {
  std::thread([] {}).join();  // a thread sanitizer starts one as well with the first
  const std::size_t descriptors = open_descriptors();
  const std::size_t threads = running_threads();
  {
    Job job(5);
    auto channels = joined(job);
    together(channels, [](Channel& channel) {
      const std::string own = std::to_string(channel.rank());
      ASSERT_TRUE(channel.put("address/" + own, "value " + own));
      for (int rank = 0; rank < channel.ranks(); ++rank) {
        const auto value = channel.get("address/" + std::to_string(rank), 60s);
        ASSERT_TRUE(value) << value.error().line();
        EXPECT_EQ(*value, "value " + std::to_string(rank));
      }
      EXPECT_TRUE(channel.barrier("ready", 60s));
      EXPECT_EQ(channel.local_address(), channel.rank() == 0 ? "" : "127.0.0.1");
      EXPECT_FALSE(channel.failed());
      EXPECT_EQ(channel.failure(), std::nullopt);
    });
    leave_all(channels);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_TRUE(eventually([&] { return running_threads() == threads; }));
}

TEST(Channel, OneRankNeedsNobody) {
  Job job(1);
  auto channel = Channel::host(job.options(0));
  ASSERT_TRUE(channel) << channel.error().line();
  EXPECT_TRUE((*channel)->put("a", "b"));
  EXPECT_EQ((*channel)->get("a", 1s).value(), "b");
  EXPECT_TRUE((*channel)->barrier("x", 1s));
  EXPECT_TRUE((*channel)->leave());
}

TEST(Channel, OverIpv6AndOnAllAddresses) {
  if (!listen_at({"::1", 0})) GTEST_SKIP() << "this machine has no IPv6";
  Job job(3, "::1");
  auto channels = joined(job);
  EXPECT_EQ(channels[1]->local_address(), "::1");
  leave_all(channels);
  // Listening on all addresses, rank 0 is reached by both families.
  Job any(3, "");
  auto both = joined(any, [](ChannelOptions& options) {
    if (options.rank == 1) options.rendezvous.host = "127.0.0.1";
    if (options.rank == 2) options.rendezvous.host = "::1";
  });
  EXPECT_EQ(both[1]->local_address(), "127.0.0.1");
  EXPECT_EQ(both[2]->local_address(), "::1");
  leave_all(both);
}

TEST(Channel, RankZeroMayComeLater) {
  Job job(3);
  const ChannelOptions first = job.options(1);
  job.close_listener();
  // Until rank 0 is there, connections are refused.
  std::vector<std::thread> early;
  std::atomic<int> come = 0;
  for (int rank = 1; rank < 3; ++rank) {
    early.emplace_back([&, options = job.options(rank)] {
      auto channel = Channel::join(options);
      EXPECT_TRUE(channel) << channel.error().line();
      if (!channel) return;
      ++come;
      EXPECT_TRUE((*channel)->leave());
    });
  }
  std::this_thread::sleep_for(50ms);
  auto host = Channel::host(job.options(0));
  EXPECT_TRUE(host) << host.error().line();
  if (host) {
    EXPECT_EQ((*host)->rendezvous().port, first.rendezvous.port);
    EXPECT_TRUE((*host)->leave(60s));
  }
  for (std::thread& thread : early) thread.join();
  EXPECT_EQ(come, 2);
}

TEST(Channel, LimitsOfKeysAndValues) {
  Job job(2);
  auto channels = joined(job);
  Channel& channel = *channels[1];
  const std::string largest(1 << 20, '\xff');
  EXPECT_TRUE(channel.put(std::string(256, 'k'), largest));
  EXPECT_EQ(channels[0]->get(std::string(256, 'k'), 60s).value(), largest);
  EXPECT_EQ(channel.get(std::string(256, 'k'), 60s).value(), largest);
  EXPECT_THAT(channel.put("k", largest + "x").error().line(), HasSubstr("longer than 1 MiB"));
  EXPECT_THAT(channel.put(std::string(257, 'k'), "").error().line(), HasSubstr("1 to 256 bytes"));
  EXPECT_FALSE(channel.put("", ""));
  EXPECT_FALSE(channel.get("", 1s));
  EXPECT_TRUE(channel.put("empty", ""));
  EXPECT_EQ(channels[0]->get("empty", 60s).value(), "");
  EXPECT_THAT(channel.put("empty", "x").error().line(), HasSubstr("another value already"));
  EXPECT_EQ(channel.get("nothing", 20ms).error().line(),
            "key 'nothing': no rank has set it after 0.02 s");
  EXPECT_EQ(channels[0]->barrier("alone", 20ms).error().line(),
            "barrier 'alone': rank 1 of 2 has not arrived after 0.02 s");
  leave_all(channels);
}

TEST(Channel, ManyThreadsOfOneRankMayAskAtOnce) {
  Job job(2);
  auto channels = joined(job);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      Channel& mine = *channels[static_cast<std::size_t>(i % 2)];
      for (int j = 0; j < 20; ++j) {
        const std::string key = std::to_string(i) + "/" + std::to_string(j);
        // What the opposite thread puts, so that about half of the gets must wait.
        const std::string other = std::to_string(i ^ 1) + "/" + std::to_string(j);
        EXPECT_TRUE(mine.put(key, key));
        EXPECT_EQ(mine.get(other, 60s).value_or("late"), other);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  leave_all(channels);
}

TEST(Channel, ProgressOfEveryRankIsKnownToRankZero) {
  Job job(3);
  auto channels = joined(job, [](ChannelOptions& options) { options.heartbeat = 10ms; });
  for (auto& channel : channels) channel->progress(100 + channel->rank());
  EXPECT_TRUE(eventually([&] {
    const auto members = channels[0]->members();
    return members[0].step == 100 && members[1].step == 101 && members[2].step == 102;
  }));
  const auto members = channels[0]->members();
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[2].rank, 2);
  EXPECT_EQ(members[2].state, MemberState::kPresent);
  EXPECT_EQ(members[2].pid, ::getpid());
  EXPECT_FALSE(members[2].host.empty());
  EXPECT_GE(members[2].seconds_since_step, 0);
  EXPECT_TRUE(channels[1]->members().empty());
  leave_all(channels);
}

TEST(Channel, ManyRanks) {
  constexpr int kRanks = 256;
  Job job(kRanks);
  auto channels = joined(job);
  together(channels, [](Channel& channel) {
    EXPECT_TRUE(channel.put(std::to_string(channel.rank()), "x"));
    const int next = (channel.rank() + 1) % channel.ranks();
    EXPECT_TRUE(channel.get(std::to_string(next), 60s));
    const auto passed = channel.barrier("all", 60s);
    EXPECT_TRUE(passed) << passed.error().line();
  });
  leave_all(channels);
}

TEST(Channel, WhatCannotBeIsRefusedAtOnce) {
  Job job(4);
  ChannelOptions options = job.options(1);
  options.rank = 4;
  EXPECT_THAT(Channel::join(options).error().line(), HasSubstr("there is no such rank"));
  options.rank = 1;
  options.secret = Secret("");
  EXPECT_THAT(Channel::join(options).error().line(), HasSubstr("no secret"));
  options.secret = Secret("a secret of tests");
  options.job = std::string(129, 'j');
  EXPECT_THAT(Channel::join(options).error().line(), HasSubstr("128 bytes"));
  ChannelOptions host = job.options(0);
  host.listener_fd = 0;  // not a listening socket
  EXPECT_THAT(Channel::host(host).error().line(), HasSubstr("not a listening socket"));
}

TEST(Channel, OptionsForAPlace) {
  RankAssignment assignment{.rank = 0,
                            .ranks = 4,
                            .rendezvous = base::HostPort{"node1", 7},
                            .job = "j",
                            .listener_fd = 5};
  EXPECT_EQ(options_for(assignment).rendezvous, (base::HostPort{"", 7}));
  EXPECT_EQ(options_for(assignment).listener_fd, 5);
  assignment.rank = 2;
  EXPECT_EQ(options_for(assignment).rendezvous, (base::HostPort{"node1", 7}));
  EXPECT_EQ(options_for(assignment).job, "j");
}

}  // namespace
}  // namespace assay::control
