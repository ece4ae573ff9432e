// TokenizerRecord: the tokenizer that produced the tokens a model was trained on. It is copied from
// the shards to the checkpoints (tokenizer.json, and its identity in the manifest), checked when a
// run is resumed, and used by `assay generate`, `assay score` and `export-hf`.
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
  std::string where = {};  // the file it was found in
  // The tokens before and after each document.
  std::optional<data::TokenId> bos = {};
  std::optional<data::TokenId> eos = {};

  [[nodiscard]] hash::Digest identity() const;
};

base::Result<TokenizerRecord> tokenizer_record(const data::Shard& shard);
// For all shards of the reader; not known if none of them names a tokenizer.
base::Result<TokenizerRecord> tokenizer_record(const data::BatchReader& reader);
base::Result<TokenizerRecord> tokenizer_record(const checkpoint::Checkpoint& from);

void add_tokenizer(const TokenizerRecord& tokenizer, checkpoint::Snapshot& snapshot);

// Refuses data whose tokenizer is known to differ from the checkpoint's.
base::Result<void> check_tokenizer(const checkpoint::Checkpoint& from,
                                   const TokenizerRecord& of_data);
// Refuses a validation set whose tokenizer is known to differ from the training data's; null: no
// set.
base::Result<void> check_validation_tokenizer(const data::BatchReader& training,
                                              const data::TokenSet* validation);

// Whether a tokenizer equals the known one, ignoring the tokens before and after documents, which
// may have been added to it, and the treatment of special tokens in text.
base::Result<bool> is_same_tokenizer(const TokenizerRecord& known,
                                     const data::TokenizerChoice& other);

// Creates the tokenizer, which must be known.
base::Result<std::unique_ptr<const data::Tokenizer>> make_tokenizer(const TokenizerRecord& record);

}  // namespace assay::train
