#include "hash/blake3.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "hash/segments.h"
#include "hash/testing/oracle.h"

namespace assay::hash {
namespace {

using Bytes = std::span<const std::byte>;

std::vector<std::string> oracle(const std::vector<std::byte>& data,
                                const std::vector<std::size_t>& lengths) {
  std::vector<Bytes> inputs;
  for (const std::size_t length : lengths) inputs.push_back(Bytes(data).first(length));
  return testing::b3sum(inputs);
}

Digest streamed(Bytes data, const Kernel& kernel, std::mt19937_64& random, std::size_t most) {
  Hasher hasher(kernel);
  while (!data.empty()) {
    const std::size_t now = std::min<std::size_t>(data.size(), random() % (most + 1));
    hasher.update(data.first(now));
    data = data.subspan(now);
  }
  return hasher.finish();
}

class EveryKernel : public ::testing::TestWithParam<const Kernel*> {};

TEST_P(EveryKernel, HashesTheEmptyInput) {
  EXPECT_EQ(Hasher(*GetParam()).finish().hex(),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
}

TEST_P(EveryKernel, AgreesWithB3sumOnShortInputs) {
  std::vector<std::size_t> lengths = {0, 2, 64, 128, 1024, 1026, 2048, 3072, 4096};
  for (std::size_t length = 1; length <= 4200; length += 2) lengths.push_back(length);
  static const auto data = testing::noise(4200);
  static const auto expected = oracle(data, lengths);
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto input = Bytes(data).first(lengths[i]);
    ASSERT_EQ(blake3(input, 1, *GetParam()).hex(), expected[i]) << lengths[i];
    ASSERT_EQ(streamed(input, *GetParam(), random, 700).hex(), expected[i]) << lengths[i];
  }
}

// Around every number of chunks at which lanes, the hasher's buffer or segments begin or end.
TEST_P(EveryKernel, AgreesWithB3sumAtTheSeams) {
  std::vector<std::size_t> lengths;
  for (const std::size_t chunks : {4U,  5U,  7U,  8U,   9U,   15U,  16U,   17U,   31U,   32U,  33U,
                                   48U, 63U, 64U, 100U, 127U, 255U, 1024U, 1025U, 2048U, 3072U}) {
    for (const std::size_t more : {0U, 1U, 2U}) lengths.push_back(chunks * kChunkBytes + more - 1);
  }
  static const auto data = testing::noise(lengths.back());
  static const auto expected = oracle(data, lengths);
  std::mt19937_64 random(6);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto input = Bytes(data).first(lengths[i]);
    ASSERT_EQ(blake3(input, 1 + static_cast<unsigned>(i % 3), *GetParam()).hex(), expected[i])
        << lengths[i];
    ASSERT_EQ(streamed(input, *GetParam(), random, 100'000).hex(), expected[i]) << lengths[i];
  }
}

TEST_P(EveryKernel, AgreesWithB3sumOnLongInputsByAnyNumberOfThreads) {
  std::mt19937_64 random(7);
  std::vector<std::size_t> lengths = {20U << 20};
  for (int i = 0; i < 2; ++i) lengths.push_back(random() % (20U << 20));
  static const auto data = testing::noise(20U << 20);
  static const auto expected = oracle(data, lengths);
  const bool slow = GetParam()->lanes == 1;  // a minute and a half under the sanitizers
  for (std::size_t i = slow ? 1 : 0; i < lengths.size(); ++i) {
    const auto input = Bytes(data).first(lengths[i]);
    for (const unsigned threads : {1U, 2U, 3U, 7U}) {
      if (slow && threads != 3) continue;
      ASSERT_EQ(blake3(input, threads, *GetParam()).hex(), expected[i]) << lengths[i];
    }
    if (slow) continue;
    ASSERT_EQ(streamed(input, *GetParam(), random, 5'000'000).hex(), expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, EveryKernel, ::testing::ValuesIn(usable_kernels()),
                         [](const auto& test) {
                           std::string name = test.param->name;
                           std::erase(name, '.');
                           return name;
                         });

// Chunk numbers beyond 2^32, which real input of a test cannot reach, compared with the plain code.
TEST_P(EveryKernel, CountsChunksIn64Bits) {
  const auto data = testing::noise(16 * kChunkBytes);
  const std::uint64_t first = (std::uint64_t{1} << 32) - 16 + 5;
  const auto value = [&](const Kernel& kernel) {
    Subtree subtree(kernel);
    subtree.begin(first, 16);
    subtree.add(data);
    return subtree.finish().chaining_value();
  };
  EXPECT_EQ(value(*GetParam()), value(kPortableKernel));
}

RC_GTEST_PROP(Hasher, GivesTheSameDigestForAnySplit, ()) {
  static const auto data = testing::noise(300'000);
  const auto cuts =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, data.size()));
  Hasher hasher;
  std::size_t done = 0;
  for (const std::size_t cut : cuts) {
    if (cut < done) continue;
    hasher.update(Bytes(data).subspan(done, cut - done));
    done = cut;
  }
  // finish() in between changes nothing.
  RC_ASSERT(hasher.finish() == blake3(Bytes(data).first(done)));
  hasher.update(Bytes(data).subspan(done));
  RC_ASSERT(hasher.finish() == blake3(data));
}

TEST(Simd, HasAName) {
  EXPECT_EQ(usable_kernels().front(), &kPortableKernel);
  EXPECT_STREQ(simd_level(), usable_kernels().back()->name);
  EXPECT_GE(usable_threads(), 1U);
}

}  // namespace
}  // namespace assay::hash
