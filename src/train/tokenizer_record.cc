#include "train/tokenizer_record.h"

#include <fmt/format.h>

#include <span>

#include "base/check.h"
#include "base/json.h"
#include "hash/blake3.h"
#include "train/data/load_tokenizer.h"

namespace assay::train {
namespace {

constexpr const char* kFileName = "tokenizer.json";
constexpr const char* kKey = "tokenizer";

std::string short_name(const hash::Digest& identity) {
  return identity.hex().substr(0, 8);
}

std::optional<data::TokenId> token_at(const base::Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<data::TokenId>();
}

}  // namespace

hash::Digest TokenizerRecord::identity() const {
  ASSAY_CHECK(definition != nullptr, "an unknown tokenizer has no identity");
  return hash::blake3(std::as_bytes(std::span(*definition)));
}

base::Result<TokenizerRecord> tokenizer_record(const data::Shard& shard) {
  TokenizerRecord record{.where = shard.where()};
  ASSAY_TRY(std::string definition, shard.tokenizer_definition());
  if (definition.empty()) return record;
  record.definition = std::make_shared<const std::string>(std::move(definition));
  record.bos = shard.documents_header()->bos;
  record.eos = shard.documents_header()->eos;
  return record;
}

base::Result<TokenizerRecord> tokenizer_record(const data::BatchReader& reader) {
  const data::Shard* shard = reader.with_tokenizer();
  if (shard == nullptr) return TokenizerRecord{};
  return tokenizer_record(*shard);
}

base::Result<TokenizerRecord> tokenizer_record(const checkpoint::Checkpoint& from) {
  TokenizerRecord record{.where = (from.folder() / kFileName).string()};
  ASSAY_TRY(std::optional<std::string> text, from.text(kFileName));
  if (!text) return record;
  record.definition = std::make_shared<const std::string>(*std::move(text));
  const base::Json& extra = from.manifest().state.extra;
  if (const auto facts = extra.find(kKey); facts != extra.end() && facts->is_object()) {
    record.bos = token_at(*facts, "bos");
    record.eos = token_at(*facts, "eos");
  }
  return record;
}

void add_tokenizer(const TokenizerRecord& tokenizer, checkpoint::Snapshot& snapshot) {
  if (tokenizer.definition == nullptr) return;
  snapshot.texts.push_back({kFileName, tokenizer.definition});
  base::Json facts{{"blake3", tokenizer.identity().hex()}};
  if (tokenizer.bos) facts["bos"] = *tokenizer.bos;
  if (tokenizer.eos) facts["eos"] = *tokenizer.eos;
  snapshot.state.extra[kKey] = std::move(facts);
}

base::Result<void> check_tokenizer(const checkpoint::Checkpoint& from,
                                   const TokenizerRecord& of_data) {
  if (of_data.definition == nullptr) return {};
  ASSAY_TRY(const TokenizerRecord there, tokenizer_record(from));
  if (there.definition == nullptr || there.identity() == of_data.identity()) return {};
  return base::fail(
      base::usage_error(of_data.where,
                        fmt::format("was made with the tokenizer {}, but {} was trained with {}",
                                    short_name(of_data.identity()), from.folder().string(),
                                    short_name(there.identity())),
                        fmt::format("tokenize with `--tokenizer {}`", there.where)));
}

base::Result<void> check_validation_tokenizer(const data::BatchReader& training,
                                              const data::TokenSet* validation) {
  const data::Shard* one = training.with_tokenizer();
  const data::Shard* other = validation == nullptr ? nullptr : validation->with_tokenizer();
  if (one == nullptr || other == nullptr ||
      one->documents_header()->tokenizer == other->documents_header()->tokenizer) {
    return {};
  }
  return base::fail(
      base::usage_error(other->where(),
                        fmt::format("was made with the tokenizer {}, but {} with {}",
                                    short_name(other->documents_header()->tokenizer), one->where(),
                                    short_name(one->documents_header()->tokenizer)),
                        "data.train and data.validation must be made with the same tokenizer"));
}

base::Result<bool> is_same_tokenizer(const TokenizerRecord& known,
                                     const data::TokenizerChoice& other) {
  ASSAY_TRY(const auto own, make_tokenizer(known));
  data::TokenizerChoice choice = other;
  for (const bool as_text : {false, true}) {
    choice.added_as_text = as_text;
    ASSAY_TRY(const auto given, data::load_tokenizer(choice));
    std::vector<data::AddedToken> more;
    for (const data::AddedToken& token : own->added()) {
      const bool is_around = token.second == known.bos || token.second == known.eos;
      if (is_around && token.second >= given->vocabulary()) more.push_back(token);
    }
    if (given->definition(more) == *known.definition) return true;
  }
  return false;
}

base::Result<std::unique_ptr<const data::Tokenizer>> make_tokenizer(const TokenizerRecord& record) {
  ASSAY_CHECK(record.definition != nullptr, "the tokenizer must be known");
  return data::tokenizer_of(*record.definition, record.where);
}

}  // namespace assay::train
