// Rows that arrive from several ranks, against a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

using Ints = std::vector<std::int32_t>;

TEST(ArrangeRows, IsAStableSortByExpert) {
  std::mt19937 random(7);
  Device device(1);
  for (int turn = 0; turn < 50; ++turn) {
    const std::int64_t ranks = 1 + static_cast<std::int64_t>(random() % 4);
    const std::int64_t experts = 1 + static_cast<std::int64_t>(random() % 5);
    Ints counts;
    Ints expert_of_row;  // as they arrive
    for (std::int64_t i = 0; i < ranks * experts; ++i) {
      counts.push_back(static_cast<std::int32_t>(random() % 4));
      expert_of_row.insert(expert_of_row.end(), static_cast<std::size_t>(counts.back()),
                           static_cast<std::int32_t>(i % experts));
    }
    const auto total = static_cast<std::int64_t>(expert_of_row.size());
    Ints expected(expert_of_row.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected, {},
                             [&](std::int32_t i) { return expert_of_row[std::size_t(i)]; });
    const std::int64_t room = total + 3;
    Ints first(counts.size() + 1, 99);
    Ints sources(static_cast<std::size_t>(room), 99);
    Ints places(static_cast<std::size_t>(room), 99);
    arrange_rows(device, {counts.data(), ranks, experts}, {counts.data(), ranks, experts},
                 {first.data(), 1, experts * ranks + 1}, {sources.data(), room, 1},
                 {places.data(), room, 1});
    // Pieces: an expert's rows of one rank.
    for (std::int64_t piece = 0; piece <= experts * ranks; ++piece) {
      std::int64_t before = 0;
      for (std::int64_t other = 0; other < piece; ++other) {
        before += counts[static_cast<std::size_t>(other % ranks * experts + other / ranks)];
      }
      EXPECT_EQ(first[static_cast<std::size_t>(piece)], before);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(sources[i], expected[i]);
      EXPECT_EQ(places[static_cast<std::size_t>(expected[i])], static_cast<std::int32_t>(i));
    }
    for (std::size_t i = expected.size(); i < sources.size(); ++i) {
      EXPECT_EQ(sources[i], -1);
      EXPECT_EQ(places[i], -1);
    }
    // There and back.
    std::vector<float> x(static_cast<std::size_t>(room * 2));
    std::iota(x.begin(), x.end(), 1.0F);
    std::vector<float> by_expert(x.size(), -1);
    std::vector<float> back(x.size(), -1);
    permute_rows(device, {x.data(), room, 2, 2}, {sources.data(), room, 1},
                 {by_expert.data(), room, 2, 2});
    permute_rows(device, {by_expert.data(), room, 2, 2}, {places.data(), room, 1},
                 {back.data(), room, 2, 2});
    const auto end = static_cast<std::ptrdiff_t>(2 * total);
    EXPECT_TRUE(std::equal(x.begin(), x.begin() + end, back.begin()));
    EXPECT_TRUE(std::all_of(back.begin() + end, back.end(), [](float v) { return v == -1; }));
  }
}

}  // namespace
}  // namespace assay::train::cpu
