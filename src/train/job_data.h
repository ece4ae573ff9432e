// The tokens that a job reads: its own shards or the built-in text, and its validation shards; and
// which of them are a rank's.
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

namespace assay::train {

// The sets of tokens that a job mixes, usually one, and their weights.
struct TrainingData {
  std::vector<data::TokenSet> sets;
  std::vector<double> weights;

  // Refers to the sets. `seed` decides the order of windows.
  [[nodiscard]] data::WindowMix mix(std::uint64_t seed) const;
};

// A job that names no data trains on the built-in text, which is in out/built-in.tokens. A run that
// begins writes it anew: what is there may be of another vocabulary, or an older text. One that
// goes on has to read what it has read before.
enum class BuiltinText { kKeep, kWriteAnew };
base::Result<TrainingData> open_training_data(const spec::JobSpec& job,
                                              const std::filesystem::path& out,
                                              BuiltinText text = BuiltinText::kKeep);
// Nothing for a job without validation.
base::Result<std::optional<data::TokenSet>> open_validation_data(const spec::JobSpec& job);

// What the program's rank reads of each micro-batch.
data::RankShare share_of(const step::Program& program);
// Whether batches for the program mask documents.
data::DocumentMask mask_of(const step::Program& program);

}  // namespace assay::train
