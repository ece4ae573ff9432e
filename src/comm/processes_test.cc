// Ranks that are processes: what the others see when one is killed, hangs, disagrees, fails or
// leaves, when something else connects, and when a rank is far ahead.
#include "comm/processes.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <sstream>

#include "comm/testing/rank_processes.h"
#include "comm/testing/uneven_all_to_all.h"

namespace assay::comm::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Lines = std::vector<std::string>;

Lines without(Lines lines, std::size_t rank) {
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(rank));
  return lines;
}

base::Result<void> gather(Communicator& c, std::int64_t count) {
  const std::vector<float> mine(static_cast<std::size_t>(count), static_cast<float>(c.rank()));
  std::vector<float> all(mine.size() * static_cast<std::size_t>(c.ranks()));
  ASSAY_TRY_VOID(c.all_gather(mine.data(), all.data(), count, ElementType::kF32));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != static_cast<float>(i / mine.size())) {
      return base::fail(base::failed_error("all_gather", "wrong values"));
    }
  }
  return {};
}

TEST(Processes, GatherAndAgree) {
  for (const bool only_tcp : {false, true}) {
    const auto lines =
        run_processes({.ranks = 3,
                       .body = [](Communicator& c) -> base::Result<void> {
                         ASSAY_TRY_VOID(gather(c, 1001));
                         ASSAY_TRY(const bool any, c.any_rank(c.rank() == 2));
                         ASSAY_TRY(const std::int64_t value, c.broadcast_value(40 + c.rank(), 2));
                         if (!any || value != 42) {
                           return base::fail(base::failed_error("rank", "got the wrong values"));
                         }
                         return {};
                       },
                       .only_tcp = only_tcp});
    EXPECT_THAT(lines, Each("ok"));
  }
}

TEST(Processes, SpeakIpv6) {
  EXPECT_THAT(run_processes({.ranks = 3,
                             .body = [](Communicator& c) { return gather(c, 100'000); },
                             .only_tcp = true,
                             .address = "::1"}),
              Each("ok"));
}

TEST(Processes, AKilledRankIsNoticedByAll) {
  for (const bool only_tcp : {false, true}) {
    for (const std::int64_t count : {std::int64_t{1024}, std::int64_t{1} << 18U}) {
      const auto lines = run_processes({.ranks = 4,
                                        .body = [&](Communicator& c) -> base::Result<void> {
                                          for (int i = 0;; ++i) {
                                            if (c.rank() == 2 && i == 3) ::raise(SIGKILL);
                                            ASSAY_TRY_VOID(gather(c, count));
                                          }
                                        },
                                        .only_tcp = only_tcp});
      EXPECT_EQ(lines[2], "killed by signal 9");
      // Noticed within a call or just before the next one.
      EXPECT_THAT(without(lines, 2), Each(StartsWith("rank 2: connection closed")));
      EXPECT_THAT(without(lines, 2),
                  Contains(HasSubstr(fmt::format(" all_gather of {} f32", count))));
    }
  }
}

TEST(Processes, ARankKilledWithinATransferIsNoticed) {
  for (const bool only_tcp : {false, true}) {
    const auto lines = run_processes(
        {.ranks = 3,
         .body = [](Communicator& c) -> base::Result<void> {
           const std::vector<std::byte> mine(std::size_t{12} << 20U);
           std::vector<std::byte> all(mine.size() * 3);
           const Call call = {CommKind::kAllGather, static_cast<std::int64_t>(mine.size())};
           ASSAY_TRY(const Ticket ticket, c.issue(call, mine.data(), all.data()));
           if (c.rank() == 1) ::raise(SIGKILL);
           return c.wait(ticket);
         },
         .only_tcp = only_tcp});
    EXPECT_EQ(lines[1], "killed by signal 9");
    EXPECT_THAT(without(lines, 1), Each(StartsWith("rank 1: connection closed")));
  }
}

TEST(Processes, ADeathEndsAlsoCallsThatDoNotNeedTheDeadRank) {
  const auto lines = run_processes({.ranks = 3, .body = [](Communicator& c) -> base::Result<void> {
                                      if (c.rank() == 2) ::raise(SIGKILL);
                                      if (c.rank() == 1) return gather(c, 1);
                                      float value = 0;  // never sent: rank 1 has failed
                                      return c.receive(&value, 1, ElementType::kF32, 1);
                                    }});
  EXPECT_EQ(lines[2], "killed by signal 9");
  EXPECT_THAT(without(lines, 2), Each(StartsWith("rank 2: connection closed")));
}

TEST(Processes, ARankThatNeverCallsIsNamed) {
  SharedMemory shared;
  const auto lines = run_processes({.ranks = 3,
                                    .body = [&](Communicator& c) -> base::Result<void> {
                                      if (c.rank() == 1) shared.await(0, 2);
                                      // The data of the others has arrived, so the late rank's
                                      // first call may still succeed.
                                      for (;;) {
                                        const auto done = gather(c, 8);
                                        if (done) continue;
                                        ++shared.flag(0);
                                        return done;
                                      }
                                    },
                                    .call_timeout = std::chrono::milliseconds(100),
                                    .shared = &shared});
  EXPECT_THAT(lines, Each("rank 1: did not join all_gather of 8 f32 within 100 ms; check whether "
                          "that rank hangs"));
}

TEST(Processes, ARankThatIsStoppedDoesNotHoldTheOthers) {
  SharedMemory shared;
  const auto lines = run_processes({.ranks = 2,
                                    .body = [&](Communicator& c) -> base::Result<void> {
                                      if (c.rank() == 1) {
                                        shared.flag(0) = ::getpid();
                                        ::raise(SIGSTOP);
                                        return gather(c, 8);
                                      }
                                      shared.await(0, 1);
                                      const auto done = gather(c, 100'000);
                                      ::kill(shared.flag(0), SIGCONT);
                                      return done;
                                    },
                                    .call_timeout = std::chrono::milliseconds(200),
                                    .shared = &shared});
  EXPECT_THAT(lines[0], StartsWith("rank 1: did not join all_gather of 100000 f32"));
  EXPECT_NE(lines[1], "ok");
}

TEST(Processes, CallsThatDifferAreBothNamed) {
  struct Case {
    std::function<base::Result<void>(Communicator&, float*)> odd;
    std::string names;
  };
  const Case cases[] = {
      {[](Communicator& c, float* b) { return c.all_gather(b, b + 100, 7, ElementType::kF32); },
       "all_gather of 7 f32"},
      {[](Communicator& c, float* b) { return c.all_gather(b, b + 100, 8, ElementType::kI32); },
       "all_gather of 8 i32"},
      {[](Communicator& c, float* b) { return c.all_to_all(b, b + 100, 8, ElementType::kF32); },
       "all_to_all of 8 f32"},
      {[](Communicator& c, float* b) { return c.broadcast(b, 8, ElementType::kF32, 1); },
       "broadcast of 8 f32 from rank 1"},
      {[](Communicator& c, float*) { return c.barrier(); }, "barrier"},
      {[](Communicator& c, float* b) {
         return c.all_gather(b, b + 50'000, 10'000, ElementType::kF32);
       },
       "all_gather of 10000 f32"},
  };
  for (const Case& odd : cases) {
    const auto lines = run_processes(
        {.ranks = 3, .body = [&](Communicator& c) -> base::Result<void> {
           std::vector<float> buffer(200'000);
           if (c.rank() == 2) return odd.odd(c, buffer.data());
           return c.all_gather(buffer.data(), buffer.data() + 100, 8, ElementType::kF32);
         }});
    EXPECT_THAT(lines, Each(AllOf(HasSubstr(odd.names), HasSubstr("all_gather of 8 f32"),
                                  HasSubstr(" where rank "),
                                  HasSubstr("all ranks must run the same job"))));
  }
}

TEST(Processes, CountsThatDifferAreAnError) {
  for (const std::int64_t sent : {std::int64_t{3}, std::int64_t{100'000}}) {
    const auto lines = run_processes(
        {.ranks = 2, .body = [&](Communicator& c) -> base::Result<void> {
           std::vector<float> buffer(400'000);
           const std::int64_t mine[] = {0, c.rank() == 0 ? sent : 0};
           const std::int64_t theirs[] = {c.rank() == 0 ? 0 : 50'000, 0};
           const std::int64_t at[] = {0, 0};
           return testing::uneven_all_to_all(c, buffer.data(), buffer.data() + 200'000,
                                             ElementType::kF32, {mine, at, theirs, at});
         }});
    EXPECT_THAT(lines, Each(AllOf(HasSubstr("in all_to_all_v of f32"),
                                  HasSubstr("counts of sender and receiver must agree"))));
  }
}

TEST(Processes, AReasonReachesAllRanksAndSubgroups) {
  const auto lines =
      run_processes({.ranks = 4, .body = [](Communicator& c) -> base::Result<void> {
                       ASSAY_TRY(const auto pair, c.split(c.rank() / 2, 0));
                       if (c.rank() == 3) {
                         return base::fail(base::unfit_error("disk", "is full"));
                       }
                       if (c.rank() == 2) return c.barrier();
                       // A group without the failing rank.
                       std::byte nothing{};
                       return pair->receive(&nothing, 1, ElementType::kU8, 1 - c.rank());
                     }});
  // Noticed within a call or just before the next one.
  EXPECT_THAT(lines, Each(StartsWith("disk: is full")));
}

TEST(Processes, ARankThatLeavesIsNamed) {
  const auto lines = run_processes({.ranks = 3, .body = [](Communicator& c) -> base::Result<void> {
                                      ASSAY_TRY_VOID(gather(c, 5));
                                      if (c.rank() == 1) return {};
                                      return gather(c, 5);
                                    }});
  EXPECT_EQ(lines[1], "ok");
  EXPECT_THAT(without(lines, 1), Each("rank 1: left the group"));
}

TEST(Processes, WhatALeavingRankSentStillArrives) {
  for (int round = 0; round < 5; ++round) {
    const auto lines =
        run_processes({.ranks = 2,
                       .body = [](Communicator& c) -> base::Result<void> {
                         std::vector<std::byte> data(100'000, std::byte{7});
                         if (c.rank() == 0) {
                           for (int i = 0; i < 50; ++i)
                             ASSAY_TRY_VOID(c.send(data.data(), 9999, ElementType::kU8, 1));
                           return c.send(data.data(), 100'000, ElementType::kU8, 1);
                         }
                         std::this_thread::sleep_for(std::chrono::milliseconds(20));
                         for (int i = 0; i < 50; ++i)
                           ASSAY_TRY_VOID(c.receive(data.data(), 9999, ElementType::kU8, 0));
                         return c.receive(data.data(), 100'000, ElementType::kU8, 0);
                       },
                       .only_tcp = round % 2 == 0});
    EXPECT_THAT(lines, Each("ok"));
  }
}

TEST(Processes, ARankMayBeFarAhead) {
  constexpr int kMessages = 2000;
  const auto lines =
      run_processes({.ranks = 2, .body = [](Communicator& c) -> base::Result<void> {
                       std::vector<std::int32_t> data(kMessages);
                       std::vector<Ticket> tickets;
                       const bool sends = c.rank() == 0;
                       for (std::int32_t i = 0; i < kMessages; ++i) {
                         data[static_cast<std::size_t>(i)] = sends ? i : -1;
                       }
                       if (!sends) ASSAY_TRY_VOID(c.barrier());
                       for (std::int32_t& value : data) {
                         const Call call = {sends ? CommKind::kSend : CommKind::kReceive, 1,
                                            ElementType::kI32, 0, 1 - c.rank()};
                         ASSAY_TRY(tickets.emplace_back(), c.issue(call, &value, &value));
                       }
                       if (sends) ASSAY_TRY_VOID(c.barrier());
                       for (const Ticket ticket : tickets) {
                         ASSAY_TRY_VOID(c.wait(ticket));
                       }
                       for (std::int32_t i = 0; i < kMessages; ++i) {
                         if (data[static_cast<std::size_t>(i)] != i) {
                           return base::fail(base::failed_error("send", "mixed up"));
                         }
                       }
                       return c.barrier();
                     }});
  EXPECT_THAT(lines, Each("ok"));
}

TEST(Processes, WhatNobodyAsksForIsBounded) {
  const auto lines =
      run_processes({.ranks = 2, .body = [](Communicator& c) -> base::Result<void> {
                       const std::vector<std::byte> data(16'384);
                       if (c.rank() == 1) return c.broadcast_value(0, 0).map([](std::int64_t) {});
                       for (int i = 0; i < 40'000; ++i) {
                         ASSAY_TRY_VOID(c.send(data.data(), 16'384, ElementType::kU8, 1));
                       }
                       return {};
                     }});
  EXPECT_THAT(lines, Each(HasSubstr("rank 0: sent 256 MiB for calls that rank 1 has not issued")));
}

// One thread waits for one group while another thread uses another: they take turns at the sockets.
TEST(Processes, ThreadsMayUseDifferentGroups) {
  for (const bool only_tcp : {false, true}) {
    const auto lines =
        run_processes({.ranks = 3,
                       .body = [](Communicator& c) -> base::Result<void> {
                         ASSAY_TRY(const auto first, c.split(0, 0));
                         ASSAY_TRY(const auto second, c.split(0, -c.rank()));
                         const auto many = [](Communicator& group, std::int64_t count) {
                           base::Result<void> done;
                           for (int i = 0; i < 100 && done; ++i) {
                             done = gather(group, count);
                           }
                           return done;
                         };
                         base::Result<void> other;
                         std::thread thread([&] { other = many(*second, 10'000); });
                         const auto done = many(*first, 10);
                         thread.join();
                         return done ? other : done;
                       },
                       .only_tcp = only_tcp});
    EXPECT_THAT(lines, Each("ok"));
  }
}

TEST(Processes, ATicketIsWaitedForOnce) {
  const auto lines = run_processes({.ranks = 2, .body = [](Communicator& c) -> base::Result<void> {
                                      ASSAY_TRY(const Ticket ticket, c.issue({}, nullptr, nullptr));
                                      ASSAY_TRY_VOID(c.wait(ticket));
                                      return c.wait(ticket);
                                    }});
  EXPECT_THAT(lines, Each(HasSubstr("waits for a call that is not in flight")));
}

// Connects to a rank's listener, over both kinds of socket, and sends something that is not a
// hello.
void disturb(const std::string& published, const std::string& sent_text,
             std::vector<int>& sockets) {
  std::istringstream fields(published);
  std::string host, address, port, name;
  fields >> host >> address >> port >> name;
  sockaddr_in tcp{};
  tcp.sin_family = AF_INET;
  tcp.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  ::inet_pton(AF_INET, address.c_str(), &tcp.sin_addr);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  const auto local_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto speak = [&](int family, const void* to, socklen_t size) {
    const int fd = ::socket(family, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, static_cast<const sockaddr*>(to), size), 0);
    ::send(fd, sent_text.data(), sent_text.size(), MSG_NOSIGNAL);
    sockets.push_back(fd);
  };
  speak(AF_INET, &tcp, sizeof tcp);
  speak(AF_UNIX, &local, local_size);
}

TEST(Processes, StrangersAreTurnedAway) {
  SharedMemory shared;
  const auto lines = run_processes(
      {.ranks = 3,
       .body = [](Communicator& c) { return gather(c, 30'000); },
       .shared = &shared,
       .before_connect =
           [&](int rank) {
             if (rank != 2) return;
             // Silent, half a hello, a long one, and one with everything right but
             // the token.
             std::string near("assayc01");
             near += std::string(16, 't') + std::string("\2\0\0\0\3\0\0\0", 8);
             std::vector<int> sockets;
             for (const char* other : {"comm/0", "comm/1"}) {
               const auto published = shared.get(other, std::chrono::minutes(1));
               for (const std::string& sent_text :
                    {std::string(), std::string("assayc01"), std::string(5000, 'x'), near}) {
                 disturb(*published, sent_text, sockets);
               }
             }
             // The sockets stay open while the ranks connect; the end of this process
             // closes them.
           }});
  EXPECT_EQ(lines[0], "ok");
  EXPECT_EQ(lines[1], "ok");
  EXPECT_THAT(lines[2], StartsWith("ok"));  // it holds the sockets of the other connections
}

TEST(Processes, ARankThatNeverComesIsNamed) {
  SharedMemory shared;
  ProcessGroupOptions options;
  options.rank = 0;
  options.ranks = 2;
  options.timeout = std::chrono::milliseconds(50);
  const auto connected = connect_processes(options, shared);
  ASSERT_FALSE(connected.has_value());
  EXPECT_EQ(connected.error().line(),
            "rank 1: has not connected to rank 0 in time; check whether it can reach 127.0.0.1");
}

TEST(Processes, SixtyFourAreConnected) {
  EXPECT_THAT(run_processes({.ranks = 64, .body = [](Communicator& c) { return gather(c, 33); }}),
              Each("ok"));
}

}  // namespace
}  // namespace assay::comm::testing
