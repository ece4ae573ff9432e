// TokenizerRecord: which tokenizer made the tokens that a model was trained on. It goes from the
// shards into the checkpoints (tokenizer.json, and its identity in the manifest), is checked when a
// run is resumed, and is what `assay generate`, `assay score` and `export-hf` use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "hash/digest.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/write.h"
#include "train/data/batch_reader.h"
#include "train/data/load_tokenizer.h"
#include "train/data/token_set.h"
#include "train/data/tokenizer.h"

namespace assay::train {

struct TokenizerRecord {
  // A tokenizer.json (data::Tokenizer::definition()); null: the tokenizer is not known.
  std::shared_ptr<const std::string> definition = nullptr;
  std::string where = {};  // what it was found in
  // The tokens before and after each document.
  std::optional<data::TokenId> bos = {};
  std::optional<data::TokenId> eos = {};

  [[nodiscard]] hash::Digest identity() const;
};

base::Result<TokenizerRecord> tokenizer_record(const data::Shard& shard);
// Of all shards that are read; not known if none of them says.
base::Result<TokenizerRecord> tokenizer_record(const data::BatchReader& reader);
base::Result<TokenizerRecord> tokenizer_record(const checkpoint::Checkpoint& from);

void add_tokenizer(const TokenizerRecord& tokenizer, checkpoint::Snapshot& snapshot);

// Refuses data whose tokenizer is known to differ from the checkpoint's.
base::Result<void> check_tokenizer(const checkpoint::Checkpoint& from,
                                   const TokenizerRecord& of_data);
// Refuses a validation set whose tokenizer is known to differ; null: there is none.
base::Result<void> check_validation_tokenizer(const data::BatchReader& training,
                                              const data::TokenSet* validation);

// Whether a tokenizer is the one that is known, apart from the tokens before and after documents,
// which may have been added to it, and from what is done with special tokens in text.
base::Result<bool> is_same_tokenizer(const TokenizerRecord& known,
                                     const data::TokenizerChoice& other);

// The tokenizer itself. It must be known.
base::Result<std::unique_ptr<const data::Tokenizer>> make_tokenizer(const TokenizerRecord& record);

}  // namespace assay::train
