#include "train/job_data.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "spec/data_mix.h"
#include "train/builtin_text.h"

namespace assay::train {

namespace {

namespace fs = std::filesystem;

// With packing, `seed` decides which documents share a row.
base::Result<data::TokenSet> open_tokens(const spec::JobSpec& job, const std::string& path,
                                         std::uint64_t seed) {
  data::TokenSource source{.paths = {path}};
  if (job.data.type) {
    source.vocabulary = static_cast<std::uint64_t>(job.model.vocab);
    source.headerless =
        *job.data.type == spec::TokenType::kU16 ? data::TokenType::kU16 : data::TokenType::kU32;
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
    const fs::path text = out / "built-in.tokens";
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
  const step::Place place = program.choices.layout.sequences();
  data::BatchShare share{.rank = number(place.rank),
                         .ranks = number(place.ranks),
                         .micro = number(program.choices.micro_batch)};
  if (program.choices.layout.context.ranks > 1) {
    const step::SequencePart part = program.sequence_part();
    share.part = data::WindowPart{number(part.piece), {number(part.first), number(part.second)}};
  }
  return share;
}

}  // namespace assay::train
