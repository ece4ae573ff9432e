// The hub alone, with simulated time: which messages ranks get, and when.
#include "control/hub.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace assay::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

Introduction who(int rank, int ranks) {
  return {"job", rank, ranks, fmt::format("node{}", rank), 100 + rank};
}

// A hub with all ranks present, and its messages in one list per rank.
class HubJob {
 public:
  explicit HubJob(int ranks, int present = -1, const HubLimits& limits = {})
      : ranks_(ranks), hub_(who(0, ranks), limits, 0) {
    for (int rank = 1; rank < (present < 0 ? ranks : present); ++rank) {
      EXPECT_EQ(hub_.admit(who(rank, ranks), 0), std::nullopt);
    }
  }
  Hub& hub() { return hub_; }
  // The messages to `rank` since the last call.
  std::vector<Message> received(int rank) {
    for (OutgoingMessage& one : hub_.take_outgoing()) received_[one.rank].push_back(one.message);
    return std::exchange(received_[rank], {});
  }
  void forget() {
    for (int rank = 0; rank < ranks_; ++rank) received(rank);
  }
  void send(int rank, Message message, std::int64_t now_ns = 0) {
    hub_.receive(rank, message, now_ns);
  }
  void time(std::int64_t now_ns) { hub_.advance(now_ns); }
  std::string failure() { return hub_.failure() ? hub_.failure()->error.line() : ""; }

 private:
  int ranks_;
  Hub hub_;
  std::map<int, std::vector<Message>> received_;
};

std::string line_of(const std::vector<Message>& received) {
  if (received.size() != 1 || received[0].kind != FrameKind::kAnswer)
    return fmt::format("{} messages", received.size());
  return received[0].number == 0 ? "=" + received[0].value : decode_error(received[0].value).line();
}

Message put(std::uint64_t id, const std::string& key, const std::string& value) {
  return {.kind = FrameKind::kPut, .id = id, .key = key, .value = value};
}
Message get(std::uint64_t id, const std::string& key, std::int64_t ms = 1000) {
  return {.kind = FrameKind::kGet, .id = id, .number = ms, .key = key};
}
Message barrier(std::uint64_t id, const std::string& name, std::int64_t ms = 1000) {
  return {.kind = FrameKind::kBarrier, .id = id, .number = ms, .key = name};
}

TEST(Hub, IsCompleteWhenTheLastRankComes) {
  HubJob job(3, 2);
  EXPECT_FALSE(job.hub().complete());
  EXPECT_TRUE(job.received(0).empty());
  EXPECT_EQ(job.hub().admit(who(2, 3), 0), std::nullopt);
  for (int rank = 0; rank < 3; ++rank) {
    const auto received = job.received(rank);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].kind, FrameKind::kComplete);
  }
  EXPECT_TRUE(HubJob(1).hub().complete());
}

TEST(Hub, WhoMayNotComeIn) {
  HubJob job(8, 4);
  EXPECT_THAT(job.hub().admit(who(5, 4), 0).value(),
              HasSubstr("rank 0 was started for 8 ranks and rank 5 for 4"));
  EXPECT_THAT(job.hub().admit(who(8, 8), 0).value(),
              HasSubstr("there is no rank 8 in a job of 8 ranks"));
  EXPECT_THAT(job.hub().admit(who(3, 8), 0).value(),
              HasSubstr("rank 3 is already there (node3, pid 103)"));
  EXPECT_THAT(job.hub().admit(who(0, 8), 0).value(), HasSubstr("rank 0 is already there"));
}

TEST(Hub, WhoComesToReportAFailureDoesNotCount) {
  HubJob job(3, 2);
  Introduction failing = who(2, 3);
  failing.purpose = Purpose::kReportFailure;
  EXPECT_EQ(job.hub().admit(failing, 0), std::nullopt);
  EXPECT_FALSE(job.hub().complete());
  job.send(2,
           {.kind = FrameKind::kFailure, .value = encode_error(base::failed_error("", "no GPU"))});
  EXPECT_EQ(job.failure(), "rank 2: no GPU");
  EXPECT_EQ(job.received(1).size(), 1U);
}

TEST(Hub, SaysWhoHasNotComeAndWhy) {
  HubJob one(8, 7);
  for (int rank = 1; rank < 7; ++rank)
    one.send(rank, {.kind = FrameKind::kHeartbeat}, 59 * kSecond);
  one.time(59 * kSecond);
  EXPECT_EQ(one.failure(), "");
  EXPECT_LE(one.hub().next_deadline_ns(), 60 * kSecond);
  one.time(60 * kSecond);
  EXPECT_EQ(one.failure(), "rank 7 of 8 has not joined after 60 s: it never connected");
  EXPECT_EQ(one.hub().failure()->rank, 7);
  one.received(3);
  HubJob two(8, 2, {.join_ns = kSecond / 4});
  two.hub().note_refusal(5, "wrong secret");
  two.time(kSecond);
  EXPECT_EQ(two.failure(),
            "ranks 2-7 of 8 have not joined after 0.25 s: rank 5 was refused: wrong secret");
  // All present ranks get the same error, and so do those that join later.
  ASSERT_EQ(two.received(1).size(), 1U);
  EXPECT_EQ(two.hub().admit(who(2, 8), kSecond), std::nullopt);
  EXPECT_EQ(decode_error(two.received(2).at(0).value).line(), two.failure());
}

TEST(Hub, DoesNotWaitForARankThatWasRefused) {
  HubJob job(4, 2);
  job.hub().note_refusal(2, "did not authenticate within 5 s");  // tries again
  job.hub().note_refusal(1, "wrong secret", 0);                  // is there: another one
  EXPECT_EQ(job.hub().next_deadline_ns(), 30 * kSecond);
  job.hub().note_refusal(3, "wrong secret", 5 * kSecond);
  job.hub().note_refusal(3, "wrong secret", 6 * kSecond);
  EXPECT_EQ(job.hub().next_deadline_ns(), 7 * kSecond);
  job.time(7 * kSecond - 1);
  EXPECT_EQ(job.failure(), "");
  job.forget();
  job.time(7 * kSecond);
  EXPECT_EQ(job.failure(), "rank 3 of 4: was refused by rank 0: wrong secret");
  ASSERT_EQ(job.received(1).size(), 1U);
  // One that was only claimed by somebody else still joins.
  HubJob claimed(3, 2);
  claimed.hub().note_refusal(2, "wrong secret", 0);
  EXPECT_EQ(claimed.hub().admit(who(2, 3), kSecond), std::nullopt);
  claimed.time(10 * kSecond);
  EXPECT_EQ(claimed.failure(), "");
}

TEST(Hub, KeysArePutOnceAndWaitedFor) {
  HubJob job(3);
  job.forget();
  job.send(1, get(7, "k"));
  EXPECT_TRUE(job.received(1).empty());
  job.send(2, put(9, "k", "v"));
  EXPECT_EQ(line_of(job.received(2)), "=");
  const auto received = job.received(1);
  EXPECT_EQ(line_of(received), "=v");
  EXPECT_EQ(received[0].id, 7U);
  job.send(0, get(1, "k"));
  EXPECT_EQ(line_of(job.received(0)), "=v");
  job.send(2, put(10, "k", "v"));
  EXPECT_EQ(line_of(job.received(2)), "=");
  job.send(2, put(11, "k", "w"));
  EXPECT_THAT(line_of(job.received(2)), HasSubstr("key 'k': has another value already"));
  job.send(1, get(12, "none", 1500), kSecond);
  job.time(2 * kSecond);
  EXPECT_TRUE(job.received(1).empty());
  job.time(kSecond + 1500'000'000);
  EXPECT_EQ(line_of(job.received(1)), "key 'none': no rank has set it after 1.5 s");
  job.send(2, put(13, "none", "late"));
  EXPECT_TRUE(job.received(1).empty());  // its wait has ended
}

TEST(Hub, KeepsNoMoreThanItMay) {
  HubJob job(1, -1, {.requests = {.store_bytes = 10, .waiting_per_rank = 2}});
  job.forget();
  job.send(0, put(1, "a", "12345678"));
  EXPECT_EQ(line_of(job.received(0)), "=");
  job.send(0, put(2, "b", "1"));
  EXPECT_THAT(line_of(job.received(0)), HasSubstr("rank 0 keeps at most 10 bytes"));
  for (std::uint64_t id = 3; id < 5; ++id) job.send(0, get(id, "c"));
  EXPECT_TRUE(job.received(0).empty());
  job.send(0, get(5, "c"));
  EXPECT_THAT(line_of(job.received(0)), HasSubstr("is already waiting for 2 answers"));
  job.time(2 * kSecond);
  EXPECT_EQ(job.received(0).size(), 2U);
  job.send(0, get(6, "c"));
  EXPECT_TRUE(job.received(0).empty());
}

TEST(Hub, Barriers) {
  HubJob job(4);
  job.forget();
  for (const int round : {1, 2}) {  // a name may be used again
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(job.received(0).empty());
      job.send(rank, barrier(static_cast<std::uint64_t>(round), "b"));
    }
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(line_of(job.received(rank)), "=");
  }
  job.send(1, barrier(3, "c", 500));
  job.send(3, barrier(3, "c", 5000));
  job.send(3, barrier(4, "c", 5000));
  EXPECT_THAT(line_of(job.received(3)), HasSubstr("rank 3 is already waiting at it"));
  job.time(kSecond);
  EXPECT_EQ(line_of(job.received(1)), "barrier 'c': ranks 0, 2 of 4 have not arrived after 0.5 s");
  // A rank that timed out does not count, and may try again.
  job.send(0, barrier(5, "c", 5000));
  job.send(2, barrier(5, "c", 5000));
  EXPECT_TRUE(job.received(3).empty());
  job.send(1, barrier(5, "c", 5000));
  EXPECT_EQ(line_of(job.received(3)), "=");
  // Nobody waits for a rank that has left.
  job.send(0, barrier(6, "d"));
  job.received(0);
  job.send(2, {.kind = FrameKind::kGoodbye});
  EXPECT_EQ(line_of(job.received(0)), "barrier 'd': rank 2 has left the job");
  job.forget();
  job.send(1, barrier(7, "e"));
  EXPECT_THAT(line_of(job.received(1)), HasSubstr("rank 2 has left the job"));
}

TEST(Hub, TheFirstFailureIsEverybodys) {
  HubJob job(3);
  job.forget();
  job.send(2, get(1, "k"));
  job.send(1, {.kind = FrameKind::kFailure,
               .value = encode_error(base::unfit_error("/data/x.bin", "no space", "free some"))});
  job.send(2,
           {.kind = FrameKind::kFailure, .value = encode_error(base::failed_error("", "second"))});
  job.hub().lost(2, "ended unexpectedly");
  for (int rank = 0; rank < 3; ++rank) {
    const auto received = job.received(rank);
    ASSERT_EQ(received.size(), 1U) << rank;
    EXPECT_EQ(received[0].number, 1);
    EXPECT_EQ(decode_error(received[0].value).line(), "rank 1: /data/x.bin: no space; free some");
    EXPECT_EQ(decode_error(received[0].value).code, base::ExitCode::kUnfit);
  }
  job.send(0, get(2, "k"));
  EXPECT_EQ(line_of(job.received(0)), "rank 1: /data/x.bin: no space; free some");
}

TEST(Hub, WhoEndsWithoutGoodbyeIsMissed) {
  HubJob job(3);
  job.send(1, {.kind = FrameKind::kHeartbeat, .number = 120});
  job.forget();
  job.hub().lost(1, "ended unexpectedly");
  job.hub().lost(1, "ended unexpectedly");
  EXPECT_EQ(job.failure(), "rank 1: ended unexpectedly (node1, pid 101, step 120); see its log");
  EXPECT_EQ(job.received(2).size(), 1U);
  HubJob orderly(3);
  orderly.forget();
  orderly.send(1, {.kind = FrameKind::kGoodbye});
  EXPECT_EQ(orderly.received(1).at(0).kind, FrameKind::kGoodbye);
  orderly.hub().lost(1, "ended unexpectedly");
  EXPECT_EQ(orderly.failure(), "");
}

TEST(Hub, SilenceIsNoticed) {
  HubJob job(3);
  for (std::int64_t second = 1; second <= 29; ++second) {
    job.send(1, {.kind = FrameKind::kHeartbeat}, second * kSecond);
    job.time(second * kSecond);
  }
  EXPECT_EQ(job.failure(), "");
  EXPECT_LE(job.hub().next_deadline_ns(), 30 * kSecond);
  job.time(30 * kSecond);
  EXPECT_THAT(job.failure(), HasSubstr("rank 2: no heartbeat for 30 s"));
}

TEST(Hub, RankZeroLeavesLast) {
  HubJob job(3);
  job.forget();
  job.send(0, {.kind = FrameKind::kGoodbye});
  EXPECT_TRUE(job.received(0).empty());
  job.send(1, {.kind = FrameKind::kGoodbye});
  EXPECT_TRUE(job.received(0).empty());
  job.send(2, {.kind = FrameKind::kGoodbye});
  EXPECT_EQ(job.received(0).at(0).kind, FrameKind::kGoodbye);
  HubJob hurried(3);
  hurried.forget();
  hurried.send(0, {.kind = FrameKind::kGoodbye, .number = 1});
  EXPECT_EQ(hurried.received(2).at(0).kind, FrameKind::kGoodbye);
}

TEST(Hub, KnowsWhoIsSlow) {
  HubJob job(2);
  job.send(1, {.kind = FrameKind::kHeartbeat, .id = 500, .number = 10}, 2 * kSecond);
  job.send(1, {.kind = FrameKind::kHeartbeat, .id = 1500, .number = 10}, 3 * kSecond);
  const std::vector<Member> members = job.hub().members(4 * kSecond);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].step, 10);
  EXPECT_DOUBLE_EQ(members[1].seconds_since_step, 2.5);
  EXPECT_DOUBLE_EQ(members[1].seconds_since_received, 1);
  EXPECT_EQ(members[1].host, "node1");
  EXPECT_EQ(members[0].step, -1);
}

TEST(Hub, RankLists) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({1, 2, 4, 5, 6, 9}), "1, 2, 4-6, 9");
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  EXPECT_EQ(rank_list(odd), "1, 3, 5, 7, 9, 11, 13, 15 and 42 more");
}

// Whatever ranks send, every request is answered at most once, and exactly once when time has
// passed or the job has failed.
RC_GTEST_PROP(Hub, EveryRequestIsAnsweredOnce, ()) {
  const int ranks = *rc::gen::inRange(1, 5);
  HubJob job(ranks, -1, {.silence_ns = INT64_MAX / 2});
  job.forget();
  std::set<std::pair<int, std::uint64_t>> open;
  std::int64_t now = 0;
  std::uint64_t id = 0;
  std::set<int> gone;
  const auto collect = [&] {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Message& message : job.received(rank)) {
        if (message.kind == FrameKind::kAnswer) RC_ASSERT(open.erase({rank, message.id}) == 1U);
        if (message.kind == FrameKind::kFailure) {
          std::erase_if(open, [&](const auto& one) { return one.first == rank; });
        }
      }
    }
  };
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) {
    const int rank = *rc::gen::inRange(0, ranks);
    if (gone.contains(rank)) continue;
    const std::string key = *rc::gen::element<std::string>("a", "b", "c");
    const std::int64_t ms = *rc::gen::inRange(0, 2000);
    switch (*rc::gen::weightedElement<int>({{4, 0}, {6, 1}, {6, 2}, {3, 3}, {1, 4}, {1, 5}})) {
      case 0:
        job.send(rank, put(++id, key, key), now);
        open.insert({rank, id});
        break;
      case 1:
        job.send(rank, get(++id, key, ms), now);
        open.insert({rank, id});
        break;
      case 2:
        job.send(rank, barrier(++id, key, ms), now);
        open.insert({rank, id});
        break;
      case 3:
        now += ms * 1'000'000;
        job.time(now);
        break;
      case 4:
        if (rank == 0) break;
        job.send(rank, {.kind = FrameKind::kGoodbye}, now);
        gone.insert(rank);
        std::erase_if(open, [&](const auto& one) { return one.first == rank; });
        break;
      default:
        if (*rc::gen::inRange(0, 10) == 0) job.send(rank, {.kind = FrameKind::kFailure}, now);
    }
    collect();
  }
  job.time(now + 10 * kSecond);
  collect();
  RC_ASSERT(open.empty());
}

}  // namespace
}  // namespace assay::control
