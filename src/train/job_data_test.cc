#include "train/job_data.h"

#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "train/data/shard_writer.h"
#include "train/data/tokenizer.h"
#include "train/tokenizer_record.h"

namespace assay::train {
namespace {

class JobData : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.model.vocab = 300;
    job_.batch.sequence = 16;
    job_.train.validate_every = 1;
  }
  // Documents of different lengths: bytes after a separator token.
  std::string write(const std::string& name, const std::string& definition) {
    const auto path = directory_.path() / name;
    auto writer = data::ShardWriter::create(path, 257, data::ShardDocuments{definition, 256, {}});
    EXPECT_TRUE(writer.has_value());
    for (std::uint32_t i = 0; i < 200; ++i) {
      std::vector<std::uint32_t> document(1 + i * 31 % 40, i % 256);
      document[0] = 256;
      writer->begin_document();
      EXPECT_TRUE(writer->append(document).has_value());
    }
    EXPECT_TRUE(writer->finish().has_value());
    return path.string();
  }
  static std::vector<std::uint32_t> packed_rows(const data::TokenSet& set) {
    std::vector<std::uint32_t> all;
    for (std::uint64_t i = 0; i < set.windows(); ++i) {
      std::vector<std::uint32_t> row(set.sequence() + 1);
      set.packed()->read(i, row);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  base::testing::MemoryDir directory_;
  spec::JobSpec job_;
};

TEST_F(JobData, ValidationRowsDoNotDependOnTheSeed) {
  job_.data.pack = spec::Packing::kDocuments;
  job_.data.train = job_.data.validation = write("a.tokens", "");
  const auto rows_with = [&](std::int64_t seed) {
    job_.train.seed = seed;
    const auto training = open_training_data(job_, directory_.path());
    const auto validation = open_validation_data(job_);
    EXPECT_TRUE(training.has_value() && validation.has_value());
    return std::pair(packed_rows(training->sets[0]), packed_rows(**validation));
  };
  const auto [training, validation] = rows_with(1);
  const auto [other_training, same_validation] = rows_with(2);
  EXPECT_NE(training, other_training);
  EXPECT_EQ(validation, same_validation);
}

TEST_F(JobData, ARunThatBeginsWritesTheBuiltInTextInItsVocabulary) {
  const auto vocabulary_of = [&](BuiltinText text) {
    const auto opened = open_training_data(job_, directory_.path(), text);
    EXPECT_TRUE(opened.has_value()) << opened.error().line();
    return opened ? opened->sets[0].vocabulary() : std::nullopt;
  };
  EXPECT_EQ(vocabulary_of(BuiltinText::kKeep), 300U);  // there is none to keep
  job_.model.vocab = 400;
  EXPECT_EQ(vocabulary_of(BuiltinText::kKeep), 300U);
  EXPECT_EQ(vocabulary_of(BuiltinText::kRewrite), 400U);
  // Smaller, so that the existing file could not even be read.
  job_.model.vocab = 256;
  EXPECT_EQ(vocabulary_of(BuiltinText::kRewrite), 256U);
}

// Any set of a mixture may name it.
TEST_F(JobData, TheTokenizerOfAMixtureIsThatOfItsSets) {
  const std::string definition = data::byte_tokenizer()->definition();
  job_.data.mix = write("unknown.tokens", "") + "=1, " + write("known.tokens", definition) + "=1";
  job_.data.validation = write("other.tokens", "another tokenizer");
  const auto training = open_training_data(job_, directory_.path());
  ASSERT_TRUE(training.has_value()) << training.error().line();
  const data::BatchReader reader(training->mix(1), 300);
  const auto record = tokenizer_record(reader);
  ASSERT_TRUE(record.has_value());
  ASSERT_NE(record->definition, nullptr);
  EXPECT_EQ(*record->definition, definition);
  EXPECT_EQ(record->bos, 256U);
  const auto validation = open_validation_data(job_);
  ASSERT_TRUE(validation.has_value());
  EXPECT_FALSE(check_validation_tokenizer(reader, &**validation).has_value());
}

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
