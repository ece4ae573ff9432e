// What a collective sends, counted: every rank's messages are really passed around and added up,
// and held against step::sent_bytes.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "step/collective.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using step::Dtype;

// Ranks with a vector each, and how many elements each has sent.
class Ranks {
 public:
  Ranks(std::int64_t ranks, std::int64_t elements)
      : ranks_(ranks), elements_(elements), sent_(static_cast<std::size_t>(ranks)) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> own(static_cast<std::size_t>(elements));
      std::iota(own.begin(), own.end(), 1000 * rank);
      data_.push_back(std::move(own));
    }
  }

  // Rank r begins with its own share and passes on what it was handed: in the end it has the sum
  // of share (r + 1).
  void reduce_scatter() {
    in_turns(0, [](std::int64_t& mine, std::int64_t theirs) { mine += theirs; });
  }
  // Likewise with finished shares.
  void all_gather() {
    in_turns(1, [](std::int64_t& mine, std::int64_t theirs) { mine = theirs; });
  }
  // From rank 0 down a chain.
  void broadcast() {
    for (std::int64_t rank = 0; rank + 1 < ranks_; ++rank) {
      of(rank + 1) = of(rank);
      sent_[static_cast<std::size_t>(rank)] += elements_;
    }
  }
  // Share s of rank r becomes share r of rank s.
  void all_to_all() {
    const auto before = data_;
    for (std::int64_t from = 0; from < ranks_; ++from) {
      for (std::int64_t to = 0; to < ranks_; ++to) {
        if (from != to) sent_[static_cast<std::size_t>(from)] += share();
        for (std::int64_t i = 0; i < share(); ++i) {
          at(to, from, i) = before[static_cast<std::size_t>(from)][place(to, i)];
        }
      }
    }
  }

  [[nodiscard]] std::int64_t share() const { return elements_ / ranks_; }
  std::int64_t& at(std::int64_t rank, std::int64_t share_index, std::int64_t i) {
    return of(rank)[place(share_index, i)];
  }
  [[nodiscard]] const std::vector<std::int64_t>& sent() const { return sent_; }
  std::vector<std::int64_t>& of(std::int64_t rank) { return data_[static_cast<std::size_t>(rank)]; }

 private:
  [[nodiscard]] std::size_t place(std::int64_t share_index, std::int64_t i) const {
    return static_cast<std::size_t>(share_index * share() + i);
  }

  // In each of n - 1 turns every rank sends one share to the next rank.
  template <class Take>
  void in_turns(std::int64_t first, Take take) {
    for (std::int64_t turn = 0; turn + 1 < ranks_; ++turn) {
      const auto before = data_;
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        const std::int64_t sent_share = ((rank + first - turn) % ranks_ + ranks_) % ranks_;
        const std::int64_t next = (rank + 1) % ranks_;
        for (std::int64_t i = 0; i < share(); ++i) {
          take(at(next, sent_share, i),
               before[static_cast<std::size_t>(rank)][place(sent_share, i)]);
        }
        sent_[static_cast<std::size_t>(rank)] += share();
      }
    }
  }

  std::int64_t ranks_;
  std::int64_t elements_;
  std::vector<std::vector<std::int64_t>> data_;
  std::vector<std::int64_t> sent_;
};

constexpr std::int64_t kShare = 3;

class Ring : public ::testing::TestWithParam<std::int64_t> {
 protected:
  std::int64_t n() const { return GetParam(); }
  std::int64_t elements() const { return n() * kShare; }
  // The sum over ranks of element `i`: rank r starts with 1000 r + i.
  std::int64_t sum(std::int64_t i) const { return 1000 * n() * (n() - 1) / 2 + n() * i; }

  void expect_sent(CollectiveKind kind, const std::vector<std::int64_t>& sent, bool by_all = true) {
    for (const Dtype type : {Dtype::kF32, Dtype::kBf16, Dtype::kFp8}) {
      const double closed = step::sent_bytes({kind, type, elements(), n()});
      const auto bytes = static_cast<double>(step::bytes_of(type));
      double most = 0;
      for (const std::int64_t count : sent) {
        if (by_all) {
          EXPECT_DOUBLE_EQ(closed, static_cast<double>(count) * bytes);
        }
        most = std::max(most, static_cast<double>(count) * bytes);
      }
      EXPECT_DOUBLE_EQ(closed, most) << step::to_text(kind);
    }
  }
};

TEST_P(Ring, ReduceScatter) {
  Ranks ranks(n(), elements());
  ranks.reduce_scatter();
  for (std::int64_t rank = 0; rank < n(); ++rank) {
    const std::int64_t own = (rank + 1) % n();
    EXPECT_EQ(ranks.at(rank, own, 1), sum(own * kShare + 1));
  }
  expect_sent(CollectiveKind::kReduceScatter, ranks.sent());
}

TEST_P(Ring, AllGather) {
  Ranks ranks(n(), elements());
  ranks.all_gather();
  for (std::int64_t rank = 0; rank < n(); ++rank) {
    for (std::int64_t owner = 0; owner < n(); ++owner) {
      const std::int64_t share = (owner + 1) % n();
      EXPECT_EQ(ranks.at(rank, share, 2), 1000 * owner + share * kShare + 2);
    }
  }
  expect_sent(CollectiveKind::kAllGather, ranks.sent());
}

TEST_P(Ring, AllReduce) {
  Ranks ranks(n(), elements());
  ranks.reduce_scatter();
  ranks.all_gather();
  for (std::int64_t rank = 0; rank < n(); ++rank) {
    for (std::int64_t i = 0; i < elements(); ++i) {
      EXPECT_EQ(ranks.of(rank)[static_cast<std::size_t>(i)], sum(i));
    }
  }
  expect_sent(CollectiveKind::kAllReduce, ranks.sent());
}

TEST_P(Ring, AllToAll) {
  Ranks ranks(n(), elements());
  ranks.all_to_all();
  for (std::int64_t to = 0; to < n(); ++to) {
    for (std::int64_t from = 0; from < n(); ++from) {
      EXPECT_EQ(ranks.at(to, from, 0), 1000 * from + to * kShare);
    }
  }
  expect_sent(CollectiveKind::kAllToAll, ranks.sent());
}

// The end of the chain sends nothing: the closed form is of a rank that passes on.
TEST_P(Ring, Broadcast) {
  Ranks ranks(n(), elements());
  ranks.broadcast();
  for (std::int64_t rank = 0; rank < n(); ++rank) EXPECT_EQ(ranks.of(rank), ranks.of(0));
  expect_sent(CollectiveKind::kBroadcast, ranks.sent(), false);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ring, ::testing::Values(2, 3, 4, 5, 7, 8, 13, 16));

TEST(RingOfOne, SendsNothing) {
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSendReceive}) {
    EXPECT_EQ(step::sent_bytes({kind, Dtype::kF32, 12, 1}), 0) << step::to_text(kind);
  }
}

TEST(RingOfOne, SendingToOneOtherSendsAll) {
  EXPECT_EQ(step::sent_bytes({CollectiveKind::kSendReceive, Dtype::kBf16, 12, 2}), 24);
}

}  // namespace
}  // namespace assay::plan
