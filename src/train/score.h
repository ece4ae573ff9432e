// Score: how well a model predicts the tokens of a shard, document by document.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "train/backend.h"
#include "train/data/shard.h"
#include "train/data/tokenizer.h"

namespace assay::train {

struct Score {
  double nats = 0;             // sum of the losses
  std::int64_t tokens = 0;     // that were predicted
  std::int64_t bytes = 0;      // of text that these tokens stand for
  std::int64_t documents = 0;  // of which something was predicted

  Score& operator+=(const Score& other);
  [[nodiscard]] double loss() const { return nats / static_cast<double>(tokens); }
  [[nodiscard]] double bits_per_byte() const;
};

struct ScoreOptions {
  std::int64_t tokens = 0;                          // at most, from the beginning; 0: all
  std::function<void(std::int64_t)> progress = {};  // tokens just scored
};

// How long the rows must be for these documents, if nothing is to be cut off that a longer row
// would have in it.
base::Result<std::int64_t> longest_row(const data::Shard& shard, const ScoreOptions& options);

// The program has purpose kLoss and one micro-batch, its weights are loaded. Every token but the
// first of a document is predicted from those before it in its row: rows begin with a document's
// first token, and where a document is longer than `sequence`, with the last token of the row
// before.
base::Result<Score> score(Backend& backend, const step::Program& program, const data::Shard& shard,
                          const data::Tokenizer& tokenizer, const ScoreOptions& options);

}  // namespace assay::train
