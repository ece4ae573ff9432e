#include "train/job_data.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/embedded_file.h"
#include "base/error.h"
#include "spec/data_mix.h"
#include "train/data/shard_writer.h"
#include "train/data/tokenizer.h"

namespace assay::train {

std::span<const base::EmbeddedFile> embedded_files();  // generated: docs/*.md

namespace {

namespace fs = std::filesystem;

base::Result<data::TokenSet> open_tokens(const spec::JobSpec& job, const std::string& path) {
  data::TokenSource source{.paths = {path}};
  if (job.data.type) {
    source.vocabulary = static_cast<std::uint64_t>(job.model.vocab);
    source.headerless =
        *job.data.type == spec::TokenType::kU16 ? data::TokenType::kU16 : data::TokenType::kU32;
  }
  std::optional<std::uint64_t> pack;
  if (job.data.pack == spec::Packing::kDocuments) pack = static_cast<std::uint64_t>(job.train.seed);
  ASSAY_TRY(data::TokenSet set,
            data::TokenSet::open(source, static_cast<std::uint64_t>(job.batch.sequence), pack));
  if (set.vocabulary() && *set.vocabulary() > static_cast<std::uint64_t>(job.model.vocab)) {
    return base::fail(
        base::usage_error(path,
                          fmt::format("has a vocabulary of {}, but the model knows {} tokens",
                                      *set.vocabulary(), job.model.vocab),
                          "set model.vocab, or use data made with the model's tokenizer"));
  }
  return set;
}

}  // namespace

data::WindowMix TrainingData::mix(std::uint64_t seed) const {
  std::vector<data::WindowMix::Part> parts;
  for (std::size_t i = 0; i < sets.size(); ++i) parts.push_back({&sets[i], weights[i]});
  return {parts, seed};
}

base::Result<TrainingData> open_training_data(const spec::JobSpec& job, const fs::path& out) {
  std::vector<spec::MixPart> parts;
  if (job.data.mix) {
    ASSAY_TRY(parts, spec::parse_mix(*job.data.mix));
  } else if (job.data.train) {
    parts = {{.path = *job.data.train}};
  } else {
    const fs::path text = out / "built-in.tokens";
    std::error_code ignored;
    if (!fs::exists(text, ignored)) ASSAY_TRY_VOID(write_builtin_text(text));
    parts = {{.path = text.string()}};
  }
  TrainingData data;
  const data::Shard* known = nullptr;  // one that names its tokenizer
  for (const spec::MixPart& part : parts) {
    ASSAY_TRY(data::TokenSet set, open_tokens(job, part.path));
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
  ASSAY_TRY(data::TokenSet set, open_tokens(job, *job.data.validation));
  return std::optional(std::move(set));
}

base::Result<void> write_builtin_text(const fs::path& path) {
  ASSAY_TRY(
      data::ShardWriter writer,
      data::ShardWriter::create(
          path, 256, data::ShardDocuments{.definition = data::byte_tokenizer()->definition()}));
  for (const base::EmbeddedFile& file : embedded_files()) {
    writer.begin_document();
    std::vector<std::uint32_t> tokens;
    for (const char byte : file.contents) tokens.push_back(static_cast<unsigned char>(byte));
    ASSAY_TRY_VOID(writer.append(tokens));
  }
  ASSAY_TRY_VOID(writer.finish());
  return {};
}

data::RankShare share_of(const step::Program& program) {
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const step::Place place = program.choices.layout.sequences();
  data::RankShare share{.rank = number(place.rank),
                        .ranks = number(place.ranks),
                        .micro = number(program.choices.micro_batch)};
  if (program.choices.layout.context.ranks > 1) {
    const step::SequencePart part = program.sequence_part();
    share.part = data::WindowPart{number(part.piece), {number(part.first), number(part.second)}};
  }
  return share;
}

}  // namespace assay::train
