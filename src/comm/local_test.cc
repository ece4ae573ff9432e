// Every collective against its definition, over numbers of ranks and sizes.
#include "comm/local.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

namespace assay::comm {
namespace {

using Rows = std::vector<std::vector<float>>;  // by rank

Rows numbers(int ranks, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Rows rows(static_cast<std::size_t>(ranks));
  for (auto& row : rows) {
    row.resize(static_cast<std::size_t>(count));
    for (float& value : row) value = std::ldexp(static_cast<float>(random()), -30) - 2;
  }
  return rows;
}

// Runs one collective on every rank; returns each rank's `out`.
Rows exchanged(int ranks, const Rows& in, std::size_t out_size,
               const std::function<base::Result<void>(Communicator&, const float*, float*)>& call) {
  Rows out(in.size(), std::vector<float>(out_size, -77));
  const auto done = run_local(ranks, [&](Communicator& c) {
    const auto me = static_cast<std::size_t>(c.rank());
    return call(c, in[me].data(), out[me].data());
  });
  EXPECT_TRUE(done.has_value());
  return out;
}

RC_GTEST_PROP(LocalRanks, EveryCollectiveIsItsDefinition, ()) {
  const int ranks = *rc::gen::inRange(1, 9);
  const int count = *rc::gen::inRange(0, 70);
  const auto n = static_cast<std::size_t>(count);
  const auto all = static_cast<std::size_t>(ranks);
  const auto wide = numbers(ranks, std::int64_t{count} * ranks, *rc::gen::arbitrary<unsigned>());

  const Rows gathered =
      exchanged(ranks, wide, n * all, [&](Communicator& c, const float* in, float* out) {
        return c.all_gather(in, out, count, ElementType::kF32);
      });
  const Rows turned =
      exchanged(ranks, wide, n * all, [&](Communicator& c, const float* in, float* out) {
        return c.all_to_all(in, out, count, ElementType::kF32);
      });
  for (std::size_t rank = 0; rank < all; ++rank) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t from = 0; from < all; ++from) {
        RC_ASSERT(gathered[rank][from * n + i] == wide[from][i]);
        RC_ASSERT(turned[rank][from * n + i] == wide[from][rank * n + i]);
      }
    }
  }
}

RC_GTEST_PROP(LocalRanks, WorkInPlace, ()) {
  const int ranks = *rc::gen::inRange(1, 9);
  const int count = *rc::gen::inRange(0, 70);
  const int root = *rc::gen::inRange(0, ranks);
  const auto n = static_cast<std::size_t>(count);
  const auto all = static_cast<std::size_t>(ranks);
  const Rows before = numbers(ranks, std::int64_t{count} * ranks, 5);
  Rows gathered = before;
  Rows sent = before;
  const auto done = run_local(ranks, [&](Communicator& c) -> base::Result<void> {
    const auto me = static_cast<std::size_t>(c.rank());
    ASSAY_TRY_VOID(
        c.all_gather(gathered[me].data() + me * n, gathered[me].data(), count, ElementType::kF32));
    return c.broadcast(sent[me].data(), count * ranks, ElementType::kF32, root);
  });
  RC_ASSERT(done.has_value());
  for (std::size_t rank = 0; rank < all; ++rank) {
    RC_ASSERT(sent[rank] == before[static_cast<std::size_t>(root)]);
    for (std::size_t i = 0; i < n * all; ++i) {
      RC_ASSERT(gathered[rank][i] == before[i / n][i]);
    }
  }
}

TEST(LocalRanks, SurviveManyRounds) {
  const auto done = run_local(5, [](Communicator& c) -> base::Result<void> {
    for (std::int32_t round = 0; round < 500; ++round) {
      const std::int32_t mine = round * c.rank();
      std::int32_t all[5] = {};
      ASSAY_TRY_VOID(c.all_gather(&mine, all, 1, ElementType::kI32));
      EXPECT_EQ(all[4], round * 4);
      if (round % 7 == 0) ASSAY_TRY_VOID(c.barrier());
    }
    return {};
  });
  EXPECT_TRUE(done.has_value());
}

TEST(LocalRanks, AgreeOnSmallValues) {
  const auto done = run_local(3, [](Communicator& c) -> base::Result<void> {
    ASSAY_TRY(const std::int64_t value, c.broadcast_value(100 + c.rank(), 1));
    EXPECT_EQ(value, 101);
    ASSAY_TRY(const bool any, c.any_rank(c.rank() == 2));
    ASSAY_TRY(const bool none, c.any_rank(false));
    EXPECT_TRUE(any);
    EXPECT_FALSE(none);
    return {};
  });
  EXPECT_TRUE(done.has_value());
}

TEST(SingleRank, CopiesOrDoesNothing) {
  const auto single = make_single_rank();
  EXPECT_EQ(single->rank(), 0);
  EXPECT_EQ(single->ranks(), 1);
  float in[2] = {1, 2};
  float out[2] = {};
  ASSERT_TRUE(single->all_to_all(in, out, 2, ElementType::kF32).has_value());
  EXPECT_EQ(out[1], 2);
  in[0] = 5;
  ASSERT_TRUE(single->all_gather(in, out, 1, ElementType::kF32).has_value());
  EXPECT_EQ(out[0], 5);
  ASSERT_TRUE(single->broadcast(in, 2, ElementType::kF32, 0).has_value());
  ASSERT_TRUE(single->barrier().has_value());
}

}  // namespace
}  // namespace assay::comm
