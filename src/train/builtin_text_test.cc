#include "train/builtin_text.h"

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "train/tokenizer_record.h"

namespace assay::train {
namespace {

// The shard has the same text for every vocabulary.
TEST(BuiltinText, IsSpelledInTheModelsVocabulary) {
  const base::testing::MemoryDir directory;
  std::string first;
  std::size_t fewest = 0;
  for (const std::int64_t vocabulary : {std::int64_t{256}, std::int64_t{300}, std::int64_t{1024}}) {
    const auto path = directory.path() / std::to_string(vocabulary);
    const auto written = write_builtin_text(path, vocabulary);
    ASSERT_TRUE(written) << written.error().line();
    const auto shard = data::Shard::open(path);
    ASSERT_TRUE(shard) << shard.error().line();
    EXPECT_TRUE(shard->verify());
    EXPECT_EQ(shard->vocabulary(), static_cast<std::uint64_t>(vocabulary));
    EXPECT_GT(shard->documents().size(), 10U);
    const auto record = tokenizer_record(*shard);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->bos.has_value(), vocabulary > 256);
    const auto tokenizer = make_tokenizer(*record);
    ASSERT_TRUE(tokenizer) << tokenizer.error().line();
    EXPECT_GT((*tokenizer)->encode("<|bos|>")->size(), 1U);  // the pages write about it
    std::vector<data::TokenId> tokens;
    for (std::uint64_t i = 0; i < shard->count(); ++i) {
      if (record->bos != shard->token(i)) tokens.push_back(shard->token(i));
    }
    const std::string text = *(*tokenizer)->decode(tokens);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first);
    // With a larger vocabulary there are fewer tokens.
    EXPECT_TRUE(fewest == 0 || tokens.size() < fewest);
    fewest = tokens.size();
  }
}

}  // namespace
}  // namespace assay::train
