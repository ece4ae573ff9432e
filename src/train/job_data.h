// The tokens that a job reads: its own shards or the built-in text, its validation shards, and each
// rank's share of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/program.h"
#include "train/data/batch_reader.h"
#include "train/data/token_set.h"
#include "train/data/window_mix.h"
#include "train/tokenizer_record.h"

namespace assay::train {

// The token sets that a job mixes (usually one), and their weights.
struct TrainingData {
  std::vector<data::TokenSet> sets;
  std::vector<double> weights;

  // Refers to the sets. `seed` determines the order of windows.
  [[nodiscard]] data::WindowMix mix(std::uint64_t seed) const;
};

// A job without data trains on the built-in text, in out/built-in.tokens. A new run rewrites the
// file, because an existing one may have another vocabulary or an older text; a resumed run must
// read the same tokens as before.
enum class BuiltinText { kKeep, kRewrite };
base::Result<TrainingData> open_training_data(const spec::JobSpec& job,
                                              const std::filesystem::path& out,
                                              BuiltinText text = BuiltinText::kKeep);
// Nothing for a job without validation.
base::Result<std::optional<data::TokenSet>> open_validation_data(const spec::JobSpec& job);

// This rank's share of each micro-batch.
data::BatchShare share_of(const step::Program& program);
// Whether the program's batches need a document mask.
data::DocumentMask mask_of(const step::Program& program);

// The text that a job without data trains on: this project's documentation.

// Writes the text as a shard, so that it is read and recorded like any other data. Models with a
// vocabulary of up to 256 read bytes; for larger ones a tokenizer with that vocabulary is trained
// on the text (with fewer tokens if the text does not yield that many).
base::Result<void> write_builtin_text(const std::filesystem::path& path, std::int64_t vocabulary);
// For a model whose tokenizer is known: to where a run in this folder reads it.
base::Result<void> write_builtin_text(const std::filesystem::path& run,
                                      const TokenizerRecord& tokenizer);

}  // namespace assay::train
