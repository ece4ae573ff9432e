#include "train/job_data.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/embedded_file.h"
#include "base/error.h"
#include "spec/job.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/count_words.h"
#include "train/data/shard_writer.h"
#include "train/data/tiktoken.h"
#include "train/data/tokenizer.h"
#include "train/data/train_bpe.h"
#include "train/data/word_splitter.h"

namespace assay::train {

std::span<const base::EmbeddedFile> embedded_files();  // generated: docs/*.md
namespace {

namespace fs = std::filesystem;

// With packing, `seed` decides which documents share a row.
base::Result<data::TokenSet> open_tokens(const spec::JobSpec& job, const std::string& path,
                                         std::uint64_t seed) {
  data::TokenSource source{.paths = {path}};
  if (job.data.type) {
    source.vocabulary = static_cast<std::uint64_t>(job.model.vocab);
    source.headerless = job.data.type;
  }
  std::optional<std::uint64_t> pack;
  if (job.data.pack == spec::Packing::kDocuments) pack = seed;
  ASSAY_TRY(data::TokenSet set,
            data::TokenSet::open(source, static_cast<std::uint64_t>(job.batch.sequence), pack));
  if (set.vocabulary() && *set.vocabulary() > static_cast<std::uint64_t>(job.model.vocab)) {
    return base::fail(
        base::usage_error(path,
                          fmt::format("has a vocabulary of {}, but the model knows {} tokens",
                                      *set.vocabulary(), job.model.vocab),
                          "set model.vocab, or use data made with the model's tokenizer"));
  }
  if (job.data.mask == spec::Mask::kDocument) {
    for (const data::Shard& shard : set.shards()) {
      ASSAY_TRY_VOID(data::check_has_documents(shard, "data.mask = \"document\""));
    }
  }
  return set;
}

constexpr const char* kBuiltinText = "built-in.tokens";
constexpr std::int64_t kByteValues = 256;

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

base::Result<void> write_text(const fs::path& path, const TextTokenizer& text) {
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

}  // namespace

data::WindowMix TrainingData::mix(std::uint64_t seed) const {
  std::vector<data::WindowMix::Part> parts;
  for (std::size_t i = 0; i < sets.size(); ++i) parts.push_back({&sets[i], weights[i]});
  return {parts, seed};
}

base::Result<TrainingData> open_training_data(const spec::JobSpec& job, const fs::path& out,
                                              BuiltinText builtin) {
  std::vector<spec::MixPart> parts;
  if (job.data.mix) {
    ASSAY_TRY(parts, spec::parse_mix(*job.data.mix));
  } else if (job.data.train) {
    parts = {{.path = *job.data.train}};
  } else {
    const fs::path text = out / kBuiltinText;
    std::error_code ignored;
    if (builtin == BuiltinText::kRewrite || !fs::exists(text, ignored)) {
      ASSAY_TRY_VOID(write_builtin_text(text, job.model.vocab));
    }
    parts = {{.path = text.string()}};
  }
  TrainingData data;
  const data::Shard* known = nullptr;  // a shard that names its tokenizer
  for (const spec::MixPart& part : parts) {
    ASSAY_TRY(data::TokenSet set,
              open_tokens(job, part.path, static_cast<std::uint64_t>(job.train.seed)));
    const data::Shard* own = set.with_tokenizer();
    if (own != nullptr) ASSAY_TRY_VOID(data::check_same_tokenizer(*own, known));
    if (known == nullptr) known = own;
    data.sets.push_back(std::move(set));
    data.weights.push_back(part.weight);
  }
  return data;
}

base::Result<std::optional<data::TokenSet>> open_validation_data(const spec::JobSpec& job) {
  if (job.train.validate_every == 0 || !job.data.validation) return std::nullopt;
  constexpr std::uint64_t kSeed = 0;  // not the job's seed: all runs are evaluated on the same rows
  ASSAY_TRY(data::TokenSet set, open_tokens(job, *job.data.validation, kSeed));
  return std::optional(std::move(set));
}

data::DocumentMask mask_of(const step::Program& program) {
  return program.choices.document_mask ? data::DocumentMask::kOn : data::DocumentMask::kOff;
}

data::BatchShare share_of(const step::Program& program) {
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const step::AxisPosition place = program.choices.layout.sequences();
  data::BatchShare share{.rank = number(place.rank),
                         .ranks = number(place.ranks),
                         .micro = number(program.choices.micro_batch)};
  if (program.choices.layout.context.ranks > 1) {
    const step::SequencePart part = program.sequence_part();
    share.part = data::WindowPart{number(part.piece), {number(part.first), number(part.second)}};
  }
  return share;
}

base::Result<void> write_builtin_text(const fs::path& path, std::int64_t vocabulary) {
  TextTokenizer text{.tokenizer = data::byte_tokenizer()};
  if (vocabulary > kByteValues) {
    ASSAY_TRY(text, trained_tokenizer(vocabulary));
  }
  return write_text(path, text);
}

base::Result<void> write_builtin_text(const fs::path& run, const TokenizerRecord& tokenizer) {
  ASSAY_TRY(auto made, make_tokenizer(tokenizer));
  return write_text(run / kBuiltinText, {std::move(made), tokenizer.bos});
}

}  // namespace assay::train
