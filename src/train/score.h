// Score: how well a model predicts the tokens of a shard, document by document.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "train/backend.h"
#include "train/data/shard.h"
#include "train/data/tokenizer.h"

namespace assay::train {

struct TextScore {
  double nats = 0;             // sum of the losses
  std::int64_t tokens = 0;     // predicted
  std::int64_t bytes = 0;      // of text, in the predicted tokens
  std::int64_t documents = 0;  // with at least one predicted token

  TextScore& operator+=(const TextScore& other);
  [[nodiscard]] double loss() const { return nats / static_cast<double>(tokens); }
  [[nodiscard]] double bits_per_byte() const;
};

struct ScoreRequest {
  std::int64_t tokens = 0;                          // limit, from the beginning; 0: all
  std::function<void(std::int64_t)> progress = {};  // tokens just scored
};

// The row length at which none of these documents is split, so that longer rows would not add
// context.
base::Result<std::int64_t> longest_row(const data::Shard& shard, const ScoreRequest& options);

// The program must have purpose kLoss, one micro-batch, and its weights loaded. Every token except
// the first of a document is predicted from those before it in its row. A row begins with a
// document's first token or, if a document is longer than `sequence`, with the last token of the
// previous row.
base::Result<TextScore> score(Backend& backend, const step::Program& program,
                              const data::Shard& shard, const data::Tokenizer& tokenizer,
                              const ScoreRequest& options);

}  // namespace assay::train
