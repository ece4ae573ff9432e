#include "observe/wire/log_header.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace assay::wire {
namespace {

TEST(LogHeader, APlaceIsGivenOnlyInsideWhatIsAllocated) {
  LogHeader header;
  EXPECT_EQ(reserve(header, 128).offset, 0U);
  header.allocated_end = kHeaderSize + 128;
  EXPECT_EQ(reserve(header, 128).offset, kHeaderSize);
  EXPECT_EQ(reserve(header, 64).offset, 0U);
  EXPECT_EQ(header.tail, kHeaderSize + 128);
}

TEST(LogHeader, ARecordDoesNotCrossIntoTheNextWindow) {
  LogHeader header;
  header.allocated_end = 3 * kWindowSize;
  header.tail = kWindowSize - 64;
  const Reservation place = reserve(header, 128);
  EXPECT_EQ(place.offset, kWindowSize);
  EXPECT_EQ(place.pad, kWindowSize - 64);
  EXPECT_EQ(place.pad_size, 64U);
  header.tail = 2 * kWindowSize - 128;
  EXPECT_EQ(reserve(header, 128).pad, 0U) << "it fits exactly";
}

TEST(LogHeader, PlacesOfManyThreadsDoNotOverlap) {
  LogHeader header;
  header.allocated_end = 8 * kWindowSize;
  constexpr std::size_t kSize = 192;
  std::vector<std::vector<std::uint64_t>> places(4);
  std::vector<std::thread> threads;
  for (auto& mine : places) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) mine.push_back(reserve(header, kSize).offset);
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (auto& mine : places) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_GE(all[i], all[i - 1] + kSize);
    ASSERT_EQ(window_begin(all[i]), window_begin(all[i] + kSize - 1));
  }
}

}  // namespace
}  // namespace assay::wire
