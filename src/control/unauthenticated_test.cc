// Peers that do not belong to the job, by mistake or on purpose, at its rendezvous port. They are
// told why they are refused, and the ranks are not affected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "control/channel.h"
#include "control/handshake.h"
#include "control/testing/ranks.h"

namespace assay::control {
namespace {

using namespace std::chrono_literals;  // NOLINT
using ::testing::AllOf;
using ::testing::HasSubstr;

SteadyTime soon() {
  return std::chrono::steady_clock::now() + 60s;
}

base::UniqueFd unauthenticated_socket(const testing::Job& job) {
  auto socket = connect_once({"127.0.0.1", job.port()}, soon());
  EXPECT_TRUE(socket) << socket.error().line();
  return socket ? *std::move(socket) : base::UniqueFd();
}

void send_bytes(const base::UniqueFd& socket, std::string_view bytes) {
  (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Everything until the other side closes.
std::string read_all(const base::UniqueFd& socket) {
  std::string all;
  char buffer[4096];
  while (wait_for(socket.get(), POLLIN, soon())) {
    const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got <= 0) break;
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

// A job of two whose rank 1 joins only after the unauthenticated peers.
class Waiting {
 public:
  explicit Waiting(const testing::Changes& change = {}) : job(2) {
    ChannelOptions options = job.options(0);
    if (change) change(options);
    host_ = std::thread([this, options] { hosted_ = Channel::host(options); });
  }
  // Rank 1 joins, and everything works.
  ~Waiting() {
    auto joined = Channel::join(job.options(1));
    EXPECT_TRUE(joined) << joined.error().line();
    host_.join();
    EXPECT_TRUE(hosted_) << hosted_.error().line();
    if (!joined || !hosted_) return;
    EXPECT_TRUE((*joined)->put("all", "well"));
    EXPECT_EQ((*hosted_)->get("all", 60s).value(), "well");
    EXPECT_TRUE((*joined)->leave());
    EXPECT_TRUE((*hosted_)->leave(60s));
  }
  std::string refusal(const testing::Changes& change) {
    ChannelOptions options = job.options(1);
    change(options);
    const auto channel = Channel::join(options);
    EXPECT_FALSE(channel);
    return channel ? "" : channel.error().line();
  }

  testing::Job job;

 private:
  std::thread host_;
  base::Result<std::unique_ptr<Channel>> hosted_;
};

TEST(Strangers, WrongJobSecretRanks) {
  Waiting waiting;
  const std::string port = std::to_string(waiting.job.port());
  EXPECT_EQ(waiting.refusal([](ChannelOptions& options) { options.job = "other job"; }),
            "rank 1 of 2: refused by rank 0 at 127.0.0.1:" + port +
                ": this port belongs to job 'test job', not to 'other job': two jobs use port " +
                port);
  EXPECT_THAT(
      waiting.refusal([](ChannelOptions& options) { options.secret = Secret("another one"); }),
      AllOf(HasSubstr("refused by rank 0"), HasSubstr("wrong secret"),
            HasSubstr("ASSAY_JOB_SECRET")));
  EXPECT_THAT(waiting.refusal([](ChannelOptions& options) { options.ranks = 3; }),
              HasSubstr("rank 0 was started for 2 ranks and rank 1 for 3"));
  EXPECT_THAT(waiting.refusal([](ChannelOptions& options) {
    options.rank = 5;
    options.ranks = 8;
  }),
              HasSubstr("rank 0 was started for 2 ranks and rank 5 for 8"));
  EXPECT_THAT(waiting.refusal([](ChannelOptions& options) {
    options.rank = 0;
    options.listener_fd.reset();
  }),
              HasSubstr("rank 0 is already there"));
}

TEST(Strangers, ASecondRankOfTheSameNumber) {
  testing::Job job(3);
  std::vector<std::thread> threads;
  std::atomic<int> refused = 0;
  std::atomic<int> come = 0;
  for (const int rank : {0, 1, 1, 1}) {
    threads.emplace_back([&, options = job.options(rank)] {
      auto channel = testing::enter(options);
      if (!channel) {
        EXPECT_THAT(channel.error().line(), HasSubstr("rank 1 is already there ("));
        ++refused;
        return;
      }
      ++come;
      EXPECT_TRUE((*channel)->leave(60s));
    });
  }
  // Rank 2 completes the job when the others have found their places.
  EXPECT_TRUE(testing::eventually([&] { return refused == 2; }));
  auto last = Channel::join(job.options(2));
  ASSERT_TRUE(last) << last.error().line();
  EXPECT_TRUE((*last)->leave(60s));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(come, 2);
}

// All ranks learn of it long before the deadline for joining.
TEST(Strangers, ARefusedRankEndsTheJobForTheOthersToo) {
  testing::Job job(3);
  ChannelOptions options = job.options(2);
  options.secret = Secret("not the same secret");
  std::thread refused([&] { EXPECT_FALSE(Channel::join(options)); });
  std::string told;
  std::thread other([&, right = job.options(1)] {
    const auto joined = Channel::join(right);
    told = joined ? "" : joined.error().line();
  });
  const auto start = std::chrono::steady_clock::now();
  const auto hosted = Channel::host(job.options(0));
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, job.options(0).join_timeout / 2);
  refused.join();
  ASSERT_FALSE(hosted);
  EXPECT_THAT(hosted.error().line(), HasSubstr("rank 2 of 3: was refused by rank 0: wrong secret"));
  EXPECT_EQ(told, hosted.error().line());
}

TEST(Strangers, TwoJobsOnOnePort) {
  testing::Job job(1);
  auto first = Channel::host(job.options(0));
  ASSERT_TRUE(first);
  ChannelOptions second = job.options(0);
  second.listener_fd.reset();
  EXPECT_THAT(Channel::host(second).error().line(),
              AllOf(HasSubstr("rank 0 cannot listen: Address already in use"),
                    HasSubstr("ASSAY_RENDEZVOUS")));
  second.rendezvous.host = "";
  EXPECT_THAT(Channel::host(second).error().line(), HasSubstr("Address already in use"));
  EXPECT_TRUE((*first)->leave());
}

TEST(Strangers, GarbageIsRefusedInOneLine) {
  Waiting waiting;
  for (const std::string_view bytes :
       {std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string_view("SSH-2.0-x\r\n"),
        std::string_view("\xff\xff\xff\x7f\x01\0\0\0", 8)}) {
    const base::UniqueFd socket = unauthenticated_socket(waiting.job);
    send_bytes(socket, bytes);
    FrameReader reader(kMaxStrangerPayload);
    reader.add(read_all(socket));
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame) << bytes;
    EXPECT_EQ((*frame)->kind, FrameKind::kRefused);
  }
  // Data without end is not kept.
  const base::UniqueFd flood = unauthenticated_socket(waiting.job);
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 4; ++i) send_bytes(flood, megabyte);
  const base::UniqueFd gone = unauthenticated_socket(waiting.job);
  // A proof without an introduction, and members' messages from a peer that is not a member.
  for (const std::string& bytes :
       {frame_bytes(FrameKind::kProof, std::string(32, 'x')), encode({.kind = FrameKind::kGoodbye}),
        encode({.kind = FrameKind::kPut, .key = "k", .value = "v"})}) {
    const base::UniqueFd socket = unauthenticated_socket(waiting.job);
    send_bytes(socket, bytes);
    EXPECT_THAT(read_all(socket), HasSubstr("unexpected message while joining a job"));
  }
}

TEST(Strangers, WhoSaysNothingIsSentAway) {
  Waiting waiting([](ChannelOptions& options) { options.authentication_timeout = 300ms; });
  const base::UniqueFd silent = unauthenticated_socket(waiting.job);
  EXPECT_THAT(read_all(silent), HasSubstr("did not authenticate within 0.3 s"));
  // Sending a little from time to time does not extend the deadline.
  const base::UniqueFd slow = unauthenticated_socket(waiting.job);
  const std::string hello =
      ClientHandshake({"test job", 1, 2, "h", 1}, Secret("x"), random_nonce()).hello_bytes();
  for (std::size_t i = 0; i + 1 < hello.size(); ++i) {
    send_bytes(slow, hello.substr(i, 1));
    if (wait_for(slow.get(), POLLIN, std::chrono::steady_clock::now() + 5ms)) break;
  }
  EXPECT_THAT(read_all(slow), HasSubstr("did not authenticate within 0.3 s"));
}

TEST(Strangers, ManySilentOnesKeepNobodyOut) {
  // More than the limit; rank 1, which joins in the destructor, must still get in.
  std::vector<base::UniqueFd> crowd;
  Waiting waiting([](ChannelOptions& options) {
    options.max_unauthenticated = 8;
    options.authentication_timeout = 600s;
  });
  for (int i = 0; i < 20; ++i) crowd.push_back(unauthenticated_socket(waiting.job));
  // All but the last eight had to go.
  EXPECT_TRUE(testing::eventually([&] {
    return std::count_if(crowd.begin(), crowd.end(), [](const base::UniqueFd& one) {
             char byte = 0;
             return ::recv(one.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
           }) == 12;
  }));
}

TEST(Strangers, WhatRankZeroIsNotIsSaid) {
  // Something else listens where rank 0 should be.
  for (const std::string_view banner :
       {std::string_view("SSH-2.0-OpenSSH_9.2p1\r\n"), std::string_view("\0\0\0\0\3\0\0\0", 8)}) {
    testing::Job job(2);
    const base::UniqueFd listener(*job.options(0).listener_fd);
    std::thread server([&] {
      if (!wait_for(listener.get(), POLLIN, soon())) return;
      const base::UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      send_bytes(socket, banner);
      char buffer[4096];
      while (::recv(socket.get(), buffer, sizeof buffer, 0) > 0) {
      }
    });
    EXPECT_THAT(Channel::join(job.options(1)).error().line(),
                HasSubstr("what listens there is not rank 0 of an assay job"));
    server.join();
  }
  // It accepts the connection and is silent.
  testing::Job job(2);
  const base::UniqueFd listener(*job.options(0).listener_fd);
  ChannelOptions options = job.options(1);
  options.join_timeout = 200ms;
  EXPECT_THAT(Channel::join(options).error().line(),
              AllOf(HasSubstr("no connection to rank 0 at "), HasSubstr("did not answer")));
}

// Rank 1 of two without a channel, after its handshake: the test reads and writes its messages.
struct RawMember {
  explicit RawMember(const testing::Job& job) : socket(unauthenticated_socket(job)) {
    const Secret secret("a secret of tests");
    ClientHandshake handshake({"test job", 1, 2, "h", 1}, secret, random_nonce());
    send_bytes(socket, handshake.hello_bytes());
    for (bool proven = false; !proven && read_more();) {
      while (const auto frame = reader.next().value()) {
        if (frame->kind >= FrameKind::kComplete) continue;
        const HandshakeResult result = handshake.receive(*frame);
        send_bytes(socket, result.bytes);
        proven = proven || result.status == HandshakeResult::Status::kAuthenticated;
      }
    }
  }
  bool read_more() {
    std::array<char, 65536> buffer;
    if (!wait_for(socket.get(), POLLIN, soon())) return false;
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got > 0) reader.add({buffer.data(), static_cast<std::size_t>(got)});
    return got > 0;
  }

  base::UniqueFd socket;
  FrameReader reader{kMaxPayload};
};

// A misbehaving member: what it sends makes it fail, never crashes rank 0.
RC_GTEST_PROP(Strangers, AMemberThatSendsGarbageFailsAlone, ()) {
  testing::Job job(2);
  base::Result<std::unique_ptr<Channel>> hosted;
  std::thread host([&, options = job.options(0)] { hosted = Channel::host(options); });
  RawMember member(job);
  host.join();
  RC_ASSERT(hosted.has_value());
  const auto kind = *rc::gen::arbitrary<unsigned char>();
  const auto payload = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  send_bytes(member.socket,
             PayloadWriter().number(payload.size(), 4).number(kind, 1).number(0, 3).bytes());
  send_bytes(member.socket, payload);
  member.socket.reset();
  // Even a goodbye may come out; then nobody waits for it any more.
  const auto waited = (*hosted)->get("never", Milliseconds(kind == 24 ? 10 : 600'000));
  RC_ASSERT(!waited);
  if (const auto failure = (*hosted)->failure()) {
    RC_ASSERT(failure->error.line().starts_with("rank 1: "));
  } else {
    RC_ASSERT(kind == 24);
  }
}

// Rank 0's messages exceed the sockets' buffers, and it leaves: nothing is lost.
TEST(Strangers, AMemberThatReadsLateStillGetsEverything) {
  testing::Job job(2);
  base::Result<std::unique_ptr<Channel>> hosted;
  std::thread host([&, options = job.options(0)] { hosted = Channel::host(options); });
  RawMember member(job);
  host.join();
  ASSERT_TRUE(hosted) << hosted.error().line();
  ASSERT_TRUE((*hosted)->put("large", std::string(1 << 20, 'x')));
  constexpr int kRequests = 30;
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    send_bytes(member.socket,
               encode({.kind = FrameKind::kGet, .id = id, .number = 60'000, .key = "large"}));
  }
  send_bytes(member.socket,
             encode({.kind = FrameKind::kPut, .id = 99, .key = "asked", .value = "all"}));
  ASSERT_TRUE((*hosted)->get("asked", 60s));
  std::thread leaving([&] { EXPECT_FALSE((*hosted)->leave(1ms)); });
  int answers = 0;
  bool goodbye = false;
  bool open = true;
  while (open) {
    while (const auto frame = member.reader.next().value()) {
      answers += frame->kind == FrameKind::kAnswer ? 1 : 0;
      goodbye = goodbye || frame->kind == FrameKind::kGoodbye;
    }
    open = member.read_more();
  }
  member.socket.reset();
  leaving.join();
  EXPECT_EQ(answers, kRequests + 1);
  EXPECT_TRUE(goodbye);
}

}  // namespace
}  // namespace assay::control
