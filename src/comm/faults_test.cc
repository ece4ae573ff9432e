// What the other ranks see when one fails, exits, hangs or makes a different call.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "comm/local.h"
#include "comm/testing/uneven_all_to_all.h"

namespace assay::comm {
namespace {

using std::chrono::milliseconds;

base::Result<void> gather_one(Communicator& c) {
  float value = 1;
  std::vector<float> all(static_cast<std::size_t>(c.ranks()));
  return c.all_gather(&value, all.data(), 1, ElementType::kF32);
}

class Stopwatch {
 public:
  [[nodiscard]] milliseconds passed() const {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun_);
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

TEST(LocalFaults, ARankThatFailsEndsTheOthersWithItsReason) {
  for (int round = 0; round < 20; ++round) {
    const Stopwatch watch;
    const auto done = run_local(4, [&](Communicator& c) -> base::Result<void> {
      for (int i = 0;; ++i) {
        if (c.rank() == 2 && i == round) {
          return base::fail(base::failed_error("disk", "is full"));
        }
        const auto summed = gather_one(c);
        if (summed) continue;
        EXPECT_EQ(summed.error().what, "is full");
        return summed;
      }
    });
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().line(), "disk: is full");
    EXPECT_LT(watch.passed(), milliseconds(30'000));
  }
}

TEST(LocalFaults, ARankThatLeavesIsNamed) {
  const auto done = run_local(3, [](Communicator& c) -> base::Result<void> {
    ASSAY_TRY_VOID(gather_one(c));
    if (c.rank() == 1) return {};  // has made all its calls
    return gather_one(c);
  });
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().line(), "rank 1: left the group");
}

TEST(LocalFaults, LeavingAfterTheLastCallIsNoFault) {
  for (int round = 0; round < 200; ++round) {
    EXPECT_TRUE(run_local(4, gather_one).has_value());
  }
}

TEST(LocalFaults, ARankThatHangsIsNamedInBoundedTime) {
  std::atomic<int> failed = 0;
  const Stopwatch watch;
  const auto done = run_local(3,
                              [&](Communicator& c) -> base::Result<void> {
                                if (c.rank() == 1) {
                                  while (failed < 2) std::this_thread::sleep_for(milliseconds(1));
                                  return gather_one(c);  // too late: the group has failed
                                }
                                const auto summed = gather_one(c);
                                ++failed;
                                return summed;
                              },
                              {.timeout = milliseconds(50)});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().where, "rank 1");
  EXPECT_EQ(done.error().what, "did not join all_gather of 1 f32 within 50 ms");
  EXPECT_LT(watch.passed(), milliseconds(30'000));
}

TEST(LocalFaults, CallsThatDifferAreBothNamed) {
  float in[16] = {};
  const auto outcome = [&](const std::function<base::Result<void>(Communicator&, float*)>& odd) {
    const auto done = run_local(3, [&](Communicator& c) -> base::Result<void> {
      float out[16] = {};
      if (c.rank() == 2) return odd(c, out);
      return c.all_to_all(in, out, 2, ElementType::kF32);
    });
    EXPECT_FALSE(done.has_value());
    return done ? std::string() : done.error().line();
  };
  const std::string rest =
      " where rank 0 calls all_to_all of 2 f32; all ranks must run the same job";
  EXPECT_EQ(outcome([&](Communicator& c, float* out) {
              return c.all_to_all(in, out, 3, ElementType::kF32);
            }),
            "rank 2: calls all_to_all of 3 f32" + rest);
  EXPECT_EQ(outcome([&](Communicator& c, float* out) {
              return c.all_to_all(in, out, 2, ElementType::kI32);
            }),
            "rank 2: calls all_to_all of 2 i32" + rest);
  EXPECT_EQ(outcome([&](Communicator& c, float* out) {
              return c.all_gather(in, out, 2, ElementType::kF32);
            }),
            "rank 2: calls all_gather of 2 f32" + rest);
  EXPECT_EQ(outcome([&](Communicator& c, float* out) {
              return c.broadcast(out, 2, ElementType::kBf16, 1);
            }),
            "rank 2: calls broadcast of 2 bf16 from rank 1" + rest);
  EXPECT_EQ(outcome([&](Communicator& c, float*) { return c.barrier(); }),
            "rank 2: calls barrier" + rest);
}

TEST(LocalFaults, AFailedGroupStaysFailed) {
  auto group = make_local(2);
  group[0]->abort(base::failed_error("rank 0", "was stopped"));
  for (int i = 0; i < 3; ++i) {
    for (const auto& c : group) {
      const auto summed = gather_one(*c);
      ASSERT_FALSE(summed.has_value());
      EXPECT_EQ(summed.error().what, "was stopped");
    }
  }
}

TEST(LocalFaults, CountsThatDifferAreAnError) {
  const auto done = run_local(2, [](Communicator& c) -> base::Result<void> {
    float buffer[16] = {};
    const std::int64_t sent[] = {0, c.rank() == 0 ? 3 : 0};
    const std::int64_t received[] = {c.rank() == 0 ? 0 : 4, 0};
    const std::int64_t at[] = {0, 0};
    return testing::uneven_all_to_all(c, buffer, buffer + 8, ElementType::kF32,
                                      {sent, at, received, at});
  });
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(
      done.error().line(),
      "rank 0: sends 3 elements to rank 1, which expects 4, in all_to_all_v of f32; counts of "
      "sender and receiver must agree");
}

TEST(LocalFaults, AReceiveThatNobodyAnswersIsBounded) {
  const auto done = run_local(3,
                              [](Communicator& c) -> base::Result<void> {
                                float value = 0;
                                if (c.rank() != 1) return c.barrier();
                                return c.receive(&value, 1, ElementType::kF32, 2);
                              },
                              {.timeout = milliseconds(50)});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().where.substr(0, 5), "rank ");
  EXPECT_NE(done.error().what.find("within 50 ms"), std::string::npos);
}

TEST(LocalFaults, BuffersAreFreeAfterLeavingOrAborting) {
  const Call call = {CommKind::kAllGather, 1000, ElementType::kF32};
  for (const bool leaves : {true, false}) {
    auto group = make_local(2);
    std::vector<float> mine(1000, 1);
    std::vector<float> all(2000);
    auto theirs = std::make_unique<std::vector<float>>(3000, 2);
    const auto ticket = group[0]->issue(call, mine.data(), all.data());
    ASSERT_TRUE(group[1]->issue(call, theirs->data(), theirs->data() + 1000).has_value());
    ASSERT_TRUE(group[1]->issue(call, theirs->data(), theirs->data() + 1000).has_value());
    if (leaves) {
      group[1].reset();
    } else {
      group[1]->abort(base::failed_error("rank 1", "was stopped"));
    }
    theirs.reset();
    // The first call had been made by both, the second never will be.
    ASSERT_TRUE(group[0]->wait(*ticket).has_value());
    EXPECT_EQ(all[1999], 2);
    EXPECT_FALSE(group[0]->issue(call, mine.data(), all.data()).has_value());
  }
}

TEST(LocalFaults, WrongArgumentsAreRefused) {
  const auto group = make_local(2);
  std::byte data[4] = {};
  EXPECT_FALSE(group[0]->broadcast(data, 4, ElementType::kU8, 2).has_value());
  EXPECT_FALSE(group[0]->broadcast(data, -1, ElementType::kU8, 0).has_value());
  EXPECT_FALSE(group[0]->send(data, 4, ElementType::kU8, 0).has_value());
  EXPECT_FALSE(group[0]->receive(data, 4, ElementType::kU8, -1).has_value());
  EXPECT_FALSE(group[0]->issue({CommKind::kAllToAllV}, data, data).has_value());
  EXPECT_FALSE(group[0]->wait({77}).has_value());
  EXPECT_FALSE(
      group[0]
          ->issue({CommKind::kAllToAllV}, data, data, {}, {.send_counts = {}, .on_device = true})
          .has_value());
}

TEST(LocalFaults, AnAbortEndsSubgroupsAndLeavingDoesNot) {
  const auto done = run_local(3, [](Communicator& c) -> base::Result<void> {
    ASSAY_TRY(const auto pair, c.split(c.rank() < 2 ? 0 : -1, 0));
    if (!pair) return {};  // leaves
    for (int i = 0; i < 100; ++i) ASSAY_TRY_VOID(gather_one(*pair));
    std::byte nothing{};
    if (c.rank() == 0) return base::fail(base::failed_error("disk", "is full"));
    return pair->receive(&nothing, 1, ElementType::kU8, 0);
  });
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().line(), "disk: is full");
}

}  // namespace
}  // namespace assay::comm
