#include "train/builtin_text.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/embedded_file.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/count_words.h"
#include "train/data/shard_writer.h"
#include "train/data/split_pattern.h"
#include "train/data/tiktoken.h"
#include "train/data/tokenizer.h"
#include "train/data/train_bpe.h"

namespace assay::train {

std::span<const base::EmbeddedFile> embedded_files();  // generated: docs/*.md

namespace {

constexpr std::int64_t kBytes = 256;

struct TextTokenizer {
  std::unique_ptr<const data::Tokenizer> tokenizer;
  std::optional<data::TokenId> bos = {};
};

base::Result<TextTokenizer> trained_tokenizer(std::int64_t vocabulary) {
  ASSAY_TRY(const std::string pattern, data::split_pattern("llama3"));
  ASSAY_TRY(data::WordSplitter splitter, data::WordSplitter::compile(pattern, "llama3"));
  data::WordCounts words;
  for (const base::EmbeddedFile& file : embedded_files()) {
    ASSAY_TRY_VOID(data::count_words_of(splitter, file.contents, words));
  }
  // One token is kept for the beginning of documents.
  const auto tokens = data::train_bpe(words, static_cast<std::size_t>(vocabulary - 1));
  const auto bos = static_cast<data::TokenId>(tokens.size());
  ASSAY_TRY(data::BpeVocabulary made,
            data::read_tiktoken(data::tiktoken_text(tokens), "the built-in text",
                                {fmt::format("<|bos|>={}", bos)}));
  // The pages write about special tokens: there they are ordinary text.
  made.added_as_text = true;
  auto tokenizer = data::bpe_tokenizer(std::move(made), std::move(splitter), pattern);
  return TextTokenizer{std::move(tokenizer), bos};
}

}  // namespace

base::Result<void> write_builtin_text(const std::filesystem::path& path, std::int64_t vocabulary) {
  TextTokenizer text{.tokenizer = data::byte_tokenizer()};
  if (vocabulary > kBytes) {
    ASSAY_TRY(text, trained_tokenizer(vocabulary));
  }
  ASSAY_TRY(data::ShardWriter writer,
            data::ShardWriter::create(
                path, text.tokenizer->vocabulary(),
                data::ShardDocuments{.definition = text.tokenizer->definition(), .bos = text.bos}));
  for (const base::EmbeddedFile& file : embedded_files()) {
    ASSAY_TRY(std::vector<data::TokenId> tokens, text.tokenizer->encode(file.contents));
    if (text.bos) tokens.insert(tokens.begin(), *text.bos);
    writer.begin_document();
    ASSAY_TRY_VOID(writer.append(tokens));
  }
  ASSAY_TRY_VOID(writer.finish());
  return {};
}

}  // namespace assay::train
