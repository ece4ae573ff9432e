// Mixtures of sets by weights, and documents packed into rows.
#include "train/data/window_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/testing/temp_dir.h"
#include "train/data/batch_reader.h"
#include "train/data/shard_writer.h"

namespace assay::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kBos = 0;
constexpr std::uint64_t kSequence = 16;

class DataOrder : public ::testing::Test {
 protected:
  // Documents of these lengths: BOS, then tokens that occur nowhere else.
  std::string write(const std::string& name, const std::vector<std::size_t>& lengths,
                    std::uint32_t first, std::optional<std::uint32_t> bos = kBos) {
    auto shard =
        ShardWriter::create(directory_.path() / name, 1 << 20, ShardDocuments{"", bos, {}});
    EXPECT_TRUE(shard);
    for (const std::size_t length : lengths) {
      std::vector<std::uint32_t> document(length, kBos);
      for (std::size_t i = 1; i < length; ++i) document[i] = first++;
      shard->begin_document();
      EXPECT_TRUE(shard->append(document));
      for (std::size_t i = 1; i < length; ++i) document_of_[document[i]] = documents_;
      ++documents_;
    }
    EXPECT_TRUE(shard->finish());
    return (directory_.path() / name).string();
  }
  std::vector<std::uint32_t> row_of(const TokenSet& set, std::uint64_t row) const {
    std::vector<std::uint32_t> tokens(kSequence + 1);
    set.packed()->read(row, tokens);
    return tokens;
  }

  base::testing::MemoryDir directory_;
  std::map<std::uint32_t, int> document_of_;
  int documents_ = 0;
};

std::vector<std::size_t> many_lengths() {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 300; ++i) lengths.push_back(1 + i * 7919 % 60);
  return lengths;
}

// A bos token that is not among the tokens, but starts continued rows, must be in the model's
// vocabulary, too.
TEST_F(DataOrder, RowsMayNotBeginWithATokenThatTheModelDoesNotKnow) {
  auto shard =
      ShardWriter::create(directory_.path() / "x.tokens", 500, ShardDocuments{"", 400, {}});
  ASSERT_TRUE(shard);
  shard->begin_document();
  ASSERT_TRUE(shard->append(std::vector<std::uint32_t>(10 * kSequence, 3)));
  ASSERT_TRUE(shard->finish());
  const auto set = TokenSet::open({{(directory_.path() / "x.tokens").string()}}, kSequence, 1);
  ASSERT_TRUE(set) << set.error().line();
  const BatchReader reader(*set, 1, 300);
  Batch batch;
  const auto read = reader.read(0, {.micro = set->windows()}, batch);
  ASSERT_FALSE(read);
  EXPECT_THAT(
      read.error().line(),
      HasSubstr("x.tokens: its documents begin with a token outside the vocabulary of 300"));
}

TEST_F(DataOrder, RowsBeginWithDocumentsAndHaveEveryTokenOnce) {
  const std::vector<std::string> paths = {write("a.tokens", many_lengths(), 1),
                                          write("b.tokens", many_lengths(), 100'000)};
  const auto set = TokenSet::open({.paths = paths}, kSequence, 7);
  ASSERT_TRUE(set) << set.error().line();
  std::vector<std::uint32_t> all;
  std::vector<int> order;  // of documents
  for (std::uint64_t row = 0; row < set->windows(); ++row) {
    const auto tokens = row_of(*set, row);
    EXPECT_EQ(tokens[0], kBos);
    for (const std::uint32_t token : tokens) {
      if (token == kBos) continue;
      all.push_back(token);
      const int document = document_of_.at(token);
      if (order.empty() || order.back() != document) order.push_back(document);
    }
  }
  // No token twice, those of a document in order, and only the last row's remainder is missing.
  EXPECT_EQ(std::set<std::uint32_t>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (document_of_.at(all[i]) != document_of_.at(all[i - 1])) continue;
    EXPECT_EQ(all[i], all[i - 1] + 1);
  }
  EXPECT_GT(all.size() + kSequence + 2, document_of_.size());
  EXPECT_FALSE(std::ranges::is_sorted(order));

  const auto other = TokenSet::open({.paths = paths}, kSequence, 8);
  EXPECT_NE(row_of(*set, 3), row_of(*other, 3));
  const auto same = TokenSet::open({.paths = paths}, kSequence, 7);
  EXPECT_EQ(row_of(*set, 33), row_of(*same, 33));
}

TEST_F(DataOrder, PackedRowsAreReadLikeWindows) {
  const std::string path = write("a.tokens", many_lengths(), 1);
  const auto set = TokenSet::open({.paths = {path}}, kSequence, 7);
  const BatchReader reader(*set, 5, 1 << 20);
  Batch whole;
  ASSERT_TRUE(reader.read(6, {.micro = 4}, whole));
  const WindowOrder order(set->windows(), 5);
  for (std::size_t r = 0; r < 4; ++r) {
    const auto row = row_of(*set, order.window_at(6 + r));
    for (std::size_t i = 0; i < kSequence; ++i) {
      EXPECT_EQ(whole.tokens[r * kSequence + i], static_cast<std::int32_t>(row[i]));
      EXPECT_EQ(whole.targets[r * kSequence + i], static_cast<std::int32_t>(row[i + 1]));
    }
  }
  // On two ranks, and in pieces.
  Batch second;
  ASSERT_TRUE(reader.read(6, {.rank = 1, .ranks = 2, .micro = 2}, second));
  EXPECT_TRUE(
      std::equal(second.tokens.begin(), second.tokens.end(), whole.tokens.begin() + 2 * kSequence));
  Batch part;
  ASSERT_TRUE(reader.read(6, {.micro = 1, .part = WindowPart{2, {1, 9}}}, part));
  EXPECT_EQ(part.tokens[3], whole.tokens[10]);
  EXPECT_EQ(part.targets[0], whole.targets[1]);
}

// In these shards only documents begin with this token, which serves as the oracle.
TEST_F(DataOrder, AMaskSaysWhereDocumentsBegin) {
  const std::string path = write("a.tokens", many_lengths(), 1);
  for (const std::optional<std::uint64_t> pack : {std::optional<std::uint64_t>{}, {7}}) {
    const auto set = TokenSet::open({.paths = {path}}, kSequence, pack);
    const BatchReader plain(*set, 5, 1 << 20);
    const BatchReader masked(*set, 5, 1 << 20, DocumentMask::kOn);
    std::uint64_t counted = 0;
    std::uint64_t ends = 0;
    for (std::uint64_t cursor = 0; cursor < set->windows(); ++cursor) {
      Batch before;
      Batch batch;
      ASSERT_TRUE(plain.read(cursor, {.micro = 1}, before));
      ASSERT_TRUE(masked.read(cursor, {.micro = 1}, batch));
      EXPECT_TRUE(before.documents.empty());
      EXPECT_EQ(batch.tokens, before.tokens);
      std::int32_t begin = 0;
      for (std::size_t i = 0; i < kSequence; ++i) {
        if (i > 0 && batch.tokens[i] == static_cast<std::int32_t>(kBos)) {
          begin = static_cast<std::int32_t>(i);
        }
        EXPECT_EQ(batch.documents[i], begin);
        const bool ends_document = before.targets[i] == static_cast<std::int32_t>(kBos);
        EXPECT_EQ(batch.targets[i], ends_document ? -1 : before.targets[i]);
        ends += ends_document ? 1 : 0;
        counted += ends_document ? 0 : 1;
      }
    }
    EXPECT_GT(ends, 20U);
    EXPECT_EQ(masked.counted_targets(0, set->windows()), counted);
    EXPECT_EQ(masked.counted_targets(3, 2) + masked.counted_targets(5, 1),
              masked.counted_targets(3, 3));
    EXPECT_EQ(plain.counted_targets(0, 10), 10 * kSequence);
    // A window has the same mask for any number of ranks.
    Batch whole;
    Batch second;
    ASSERT_TRUE(masked.read(6, {.micro = 4}, whole));
    ASSERT_TRUE(masked.read(6, {.rank = 1, .ranks = 2, .micro = 2}, second));
    EXPECT_TRUE(std::equal(second.documents.begin(), second.documents.end(),
                           whole.documents.begin() + 2 * kSequence));
    EXPECT_TRUE(std::equal(second.targets.begin(), second.targets.end(),
                           whole.targets.begin() + 2 * kSequence));
  }
}

TEST_F(DataOrder, AMaskNeedsDocuments) {
  const auto documents = Shard::open(write("a.tokens", {40, 40}, 1, {}));
  EXPECT_TRUE(check_has_documents(*documents, "a mask"));
  auto plain = ShardWriter::create(directory_.path() / "b.tokens", 300);
  ASSERT_TRUE(plain->append(std::vector<std::uint32_t>(40, 1)));
  ASSERT_TRUE(plain->finish());
  const auto refused = check_has_documents(*Shard::open(directory_.path() / "b.tokens"), "a mask");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().line(),
              HasSubstr("b.tokens: does not say where documents begin; a mask needs shards"));
}

TEST_F(DataOrder, PackingNeedsDocumentsWithABeginning) {
  const auto refusal = [&](const std::string& path) {
    const auto set = TokenSet::open({.paths = {path}}, kSequence, 7);
    return set ? "" : set.error().what;
  };
  EXPECT_EQ(refusal(write("a.tokens", {40, 40}, 1, {})), "no token begins its documents");
  auto plain = ShardWriter::create(directory_.path() / "b.tokens", 300);
  ASSERT_TRUE(plain->append(std::vector<std::uint32_t>(40, 1)));
  ASSERT_TRUE(plain->finish());
  EXPECT_EQ(refusal((directory_.path() / "b.tokens").string()),
            "does not say where documents begin");
  EXPECT_THAT(refusal(write("c.tokens", {5, 5}, 1)), HasSubstr("no shard has 17 tokens"));
}

TEST_F(DataOrder, SharesFollowTheWeights) {
  using Weights = std::vector<double>;
  EXPECT_THAT(WindowMix::shares(Weights{1}), ElementsAre(65536));
  EXPECT_THAT(WindowMix::shares(Weights{3, 1}), ElementsAre(49152, 16384));
  EXPECT_THAT(WindowMix::shares(Weights{1, 1, 1}), ElementsAre(21846, 21845, 21845));
  EXPECT_THAT(WindowMix::shares(Weights{1e-9, 1}), ElementsAre(1, 65535));
  EXPECT_THAT(WindowMix::shares(Weights{1e-9, 1e-9, 1e9}), ElementsAre(1, 1, 65534));
}

TEST_F(DataOrder, AMixtureReadsEachSetInItsShareAndEpochs) {
  const auto large = TokenSet::open({.paths = {write("a.tokens", {50'001}, 1)}}, kSequence);
  const auto small = TokenSet::open({.paths = {write("b.tokens", {1'601}, 100'000)}}, kSequence);
  ASSERT_EQ(small->windows(), 100U);
  const WindowMix mix({{&*large, 0.75}, {&*small, 0.25}}, 3);
  std::map<std::uint64_t, int> times;
  int of_small = 0;
  for (std::uint64_t cursor = 0; cursor < WindowMix::kBlock; ++cursor) {
    const WindowMix::Place place = mix.at(cursor);
    ASSERT_LT(place.window, place.set->windows());
    if (place.set != &*small) continue;
    ++of_small;
    ++times[place.window];
  }
  EXPECT_EQ(of_small, 16384);
  // Epoch after epoch: each window equally often, except in the last epoch.
  ASSERT_EQ(times.size(), 100U);
  for (const auto& [window, count] : times) EXPECT_THAT(count, ::testing::AnyOf(163, 164));
  // Also over short distances: a thousand windows are mixed.
  int early = 0;
  for (std::uint64_t cursor = 0; cursor < 1000; ++cursor) early += mix.at(cursor).set == &*small;
  EXPECT_NEAR(early, 250, 60);
  EXPECT_NE(WindowMix({{&*large, 1}, {&*small, 1}}, 4).at(9).window, mix.at(9).window);
}

}  // namespace
}  // namespace assay::data
