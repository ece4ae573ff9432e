// Ranks that fail, die, hang or never join: all others learn of it, once, in one line, and nobody
// waits for ever.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "control/channel.h"
#include "control/testing/ranks.h"

namespace assay::control {
namespace {

using namespace std::chrono_literals;  // NOLINT
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

std::string failure_of(const Channel& channel) {
  const auto failure = channel.failure();
  return failure ? failure->error.line() : "none";
}

TEST(ChannelFaults, AReportedFailureIsEverybodysAtOnce) {
  testing::Job job(4);
  auto channels = testing::joined(job);
  std::atomic<int> called = 0;
  std::vector<FailureSubscription> subscriptions;
  for (auto& channel : channels) {
    EXPECT_FALSE(readable(channel->failure_fd()));
    subscriptions.push_back(channel->on_failure([&](const Failure& failure) {
      EXPECT_EQ(failure.rank, 2);
      ++called;
    }));
  }
  subscriptions[3] = {};  // unsubscribed
  testing::together(channels, [](Channel& channel) {
    if (channel.rank() == 2) {
      channel.report_failure(
          base::unfit_error("/data/shard-7", "cannot read: No such file", "copy it"));
    } else if (channel.rank() == 1) {
      EXPECT_THAT(channel.get("never", 600s).error().line(), StartsWith("rank 2: "));
    } else {
      EXPECT_THAT(channel.barrier("never", 600s).error().line(), StartsWith("rank 2: "));
    }
    EXPECT_TRUE(testing::eventually([&] { return channel.failed(); }));
    EXPECT_EQ(failure_of(channel), "rank 2: /data/shard-7: cannot read: No such file; copy it");
    EXPECT_EQ(channel.failure()->error.code, base::ExitCode::kUnfit);
    EXPECT_TRUE(readable(channel.failure_fd()));
    EXPECT_FALSE(channel.put("late", "x"));
    channel.report_failure(base::failed_error("", "a consequence"));
  });
  EXPECT_TRUE(testing::eventually([&] { return called == 3; }));
  // A later subscriber is called at once.
  int late = 0;
  const auto subscription = channels[0]->on_failure([&](const Failure&) { ++late; });
  EXPECT_EQ(late, 1);
  EXPECT_EQ(called, 3);
  EXPECT_THAT(channels[1]->leave().error().line(), StartsWith("rank 2: "));
}

TEST(ChannelFaults, RankZerosOwnFailureReachesAllBeforeItIsGone) {
  testing::Job job(4);
  auto channels = testing::joined(job);
  channels[0]->report_failure(base::failed_error("", "out of memory"));
  channels[0].reset();
  for (int rank = 1; rank < 4; ++rank) {
    Channel& channel = *channels[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(channel.get("never", 600s));
    EXPECT_EQ(failure_of(channel), "rank 0: out of memory");
  }
}

TEST(ChannelFaults, WhoGoesWithoutGoodbyeIsMissed) {
  testing::Job job(3);
  auto channels = testing::joined(job);
  channels[1]->progress(7);
  channels[1].reset();
  EXPECT_THAT(channels[2]->get("never", 600s).error().line(),
              StartsWith("rank 1: ended unexpectedly ("));
  EXPECT_THAT(channels[0]->get("never", 600s).error().line(),
              StartsWith("rank 1: ended unexpectedly ("));
  testing::Job second(3);
  auto others = testing::joined(second);
  others[0].reset();
  EXPECT_THAT(others[1]->barrier("never", 600s).error().line(),
              StartsWith("rank 0: ended unexpectedly"));
}

TEST(ChannelFaults, WhoHasSaidGoodbyeIsNotMissed) {
  testing::Job job(3);
  auto channels = testing::joined(job);
  EXPECT_TRUE(channels[1]->leave());
  channels[1].reset();
  EXPECT_TRUE(channels[2]->put("still", "there"));
  EXPECT_EQ(channels[0]->get("still", 60s).value(), "there");
  EXPECT_THAT(channels[0]->barrier("all", 600s).error().line(),
              HasSubstr("rank 1 has left the job"));
  // Rank 0 does not wait for ever for ranks that do not leave.
  EXPECT_EQ(channels[0]->leave(20ms).error().line(),
            "rank 0: rank 2 of 3 has not left after 0.02 s");
  EXPECT_THAT(channels[2]->get("never", 600s).error().line(),
              HasSubstr("rank 0: has left the job"));
  EXPECT_FALSE(channels[2]->failed());
}

// A separate process, killed in the middle.
TEST(ChannelFaults, AKilledProcessIsNoticed) {
  testing::Job job(3);
  ChannelOptions theirs = job.options(2);
  theirs.heartbeat = 20ms;
  const ChannelOptions other = job.options(1);
  const ChannelOptions host = job.options(0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(*host.listener_fd);
    const auto channel = Channel::join(theirs);
    if (!channel) ::_exit(1);
    (*channel)->progress(41);
    (void)(*channel)->put("here", "x");
    (void)(*channel)->get("never", 600s);
    ::_exit(2);
  }
  base::Result<std::unique_ptr<Channel>> joined;
  std::thread thread([&] { joined = Channel::join(other); });
  auto hosted = Channel::host(host);
  thread.join();
  ASSERT_TRUE(hosted) << hosted.error().line();
  ASSERT_TRUE(joined) << joined.error().line();
  EXPECT_TRUE((*joined)->get("here", 60s));
  EXPECT_TRUE(testing::eventually([&] { return (*hosted)->members()[2].step == 41; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  const auto line = AllOf(StartsWith("rank 2: ended unexpectedly ("),
                          HasSubstr("pid " + std::to_string(child)), HasSubstr("step 41"));
  EXPECT_THAT((*hosted)->get("never", 600s).error().line(), line);
  EXPECT_THAT((*joined)->get("never", 600s).error().line(), line);
  EXPECT_EQ((*hosted)->members()[2].state, MemberState::kLost);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

// A stopped process stays connected but sends nothing.
TEST(ChannelFaults, AStoppedProcessIsNoticedAndLearnsIt) {
  testing::Job job(2);
  ChannelOptions host = job.options(0);
  host.silence_timeout = 3000ms;
  ChannelOptions theirs = job.options(1);
  theirs.heartbeat = 50ms;
  int report[2];
  ASSERT_EQ(::pipe2(report, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(*host.listener_fd);
    const auto channel = Channel::join(theirs);
    if (!channel || !(*channel)->put("here", "x")) ::_exit(1);
    const std::string line = (*channel)->get("never", 600s).error().line();
    (void)!::write(report[1], line.data(), line.size());
    ::_exit(0);
  }
  ::close(report[1]);
  const auto hosted = Channel::host(host);
  ASSERT_TRUE(hosted) << hosted.error().line();
  EXPECT_TRUE((*hosted)->get("here", 60s));
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  EXPECT_THAT((*hosted)->get("never", 600s).error().line(),
              StartsWith("rank 1: no heartbeat for 3 s: its process is stopped"));
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  std::string line(1000, '\0');
  const ssize_t got = ::read(report[0], line.data(), line.size());
  line.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  EXPECT_THAT(line, StartsWith("rank 1: no heartbeat for 3 s"));
  ::close(report[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ChannelFaults, AStoppedRankZeroIsNoticed) {
  testing::Job job(2);
  ChannelOptions host = job.options(0);
  host.heartbeat = 50ms;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto channel = Channel::host(host);
    if (channel) (void)(*channel)->get("never", 600s);
    ::_exit(0);
  }
  ::close(*host.listener_fd);
  ChannelOptions options = job.options(1);
  options.listener_fd.reset();
  options.silence_timeout = 3000ms;
  options.heartbeat = 50ms;
  const auto channel = Channel::join(options);
  ASSERT_TRUE(channel) << channel.error().line();
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  EXPECT_THAT((*channel)->get("never", 600s).error().line(),
              StartsWith("rank 0: no heartbeat for 3 s"));
  ::kill(child, SIGKILL);
  ::kill(child, SIGCONT);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST(ChannelFaults, RanksThatNeverComeAreNamedToAll) {
  testing::Job job(4);
  const auto options = [&](int rank) {
    ChannelOptions mine = job.options(rank);
    mine.join_timeout = 2s;
    return mine;
  };
  const ChannelOptions host = options(0);
  base::Result<std::unique_ptr<Channel>> joined;
  std::thread thread([&, mine = options(1)] {
    ChannelOptions patient = mine;
    patient.join_timeout = 60s;
    joined = Channel::join(patient);
  });
  const auto hosted = Channel::host(host);
  thread.join();
  ASSERT_FALSE(hosted);
  const std::string line = "ranks 2, 3 of 4 have not joined after 2 s: they never connected";
  EXPECT_EQ(hosted.error().line(), line);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().line(), line);
}

TEST(ChannelFaults, ARankZeroThatNeverComesIsNamed) {
  testing::Job job(2);
  job.close_listener();
  ChannelOptions options = job.options(1);
  options.join_timeout = 100ms;
  EXPECT_THAT(Channel::join(options).error().line(),
              AllOf(StartsWith("rank 1 of 2: no connection to rank 0 at 127.0.0.1:"),
                    HasSubstr(" after "), HasSubstr("Connection refused")));
  options.rendezvous.host = "no-such-host.invalid";
  EXPECT_THAT(Channel::join(options).error().line(),
              HasSubstr("unknown host 'no-such-host.invalid'"));
}

TEST(ChannelFaults, WhoFailsBeforeJoiningSaysWhy) {
  testing::Job job(3);
  const ChannelOptions host = job.options(0);
  std::thread failing([options = job.options(2)] {
    const auto announced = announce_failure(options, base::unfit_error("job.toml", "no GPU here"));
    EXPECT_TRUE(announced) << announced.error().line();
  });
  base::Result<std::unique_ptr<Channel>> joined;
  std::thread thread([&, options = job.options(1)] { joined = Channel::join(options); });
  const auto hosted = Channel::host(host);
  thread.join();
  failing.join();
  ASSERT_FALSE(hosted);
  ASSERT_FALSE(joined);
  EXPECT_EQ(hosted.error().line(), "rank 2: job.toml: no GPU here");
  EXPECT_EQ(joined.error().line(), "rank 2: job.toml: no GPU here");
  EXPECT_EQ(hosted.error().code, base::ExitCode::kUnfit);
}

TEST(ChannelFaults, RankZeroFailsBeforeHosting) {
  testing::Job job(3);
  const ChannelOptions host = job.options(0);
  std::vector<std::thread> threads;
  for (int rank = 1; rank < 3; ++rank) {
    threads.emplace_back([options = job.options(rank)] {
      EXPECT_EQ(Channel::join(options).error().line(), "rank 0: no data");
    });
  }
  EXPECT_TRUE(announce_failure(host, base::failed_error("", "no data")));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace assay::control
