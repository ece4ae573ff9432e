// BatchReader: reads the micro-batch of a rank at a cursor. Stateless and thread-safe.
//
// The assignment of windows makes a step independent of the number of ranks:
//
//   row i of rank r  is  the window at  cursor + r * micro + i     (0 <= i < micro)
//
// so a micro-batch of all ranks is the next ranks * micro windows, and a step is the next
// ranks * micro * accumulate windows, however that product is factored. Ranks that share windows
// (context parallelism) have the same `rank` here, and take different parts of each window.
//
// With a document mask, each token of a row is labelled with the position where its document begins
// in the row, and the first token of a document is not a target: it cannot be predicted from the
// document before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/data/token_set.h"
#include "train/data/window_mix.h"

namespace assay::data {

// A rank's two pieces of every window: `length` tokens each, starting at `from`.
struct WindowPart {
  std::uint64_t length = 0;
  std::array<std::uint64_t, 2> from = {};
};

// A rank's share of every micro-batch.
struct BatchShare {
  std::uint64_t rank = 0;
  std::uint64_t ranks = 1;
  std::uint64_t micro = 1;                        // rows of a micro-batch, windows of one rank
  std::optional<WindowPart> part = std::nullopt;  // nothing: whole windows

  // Tokens of a row.
  [[nodiscard]] std::uint64_t tokens(std::uint64_t sequence) const {
    return part ? 2 * part->length : sequence;
  }

  // How far a micro-batch of all ranks advances the cursor.
  [[nodiscard]] std::uint64_t stride() const { return ranks * micro; }
};

// `micro` rows, each of the tokens that this rank has of a window.
struct Batch {
  std::uint64_t cursor = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // negative: not counted
  // With a document mask: where each token's document begins in its row.
  std::vector<std::int32_t> documents;
};

// Destination of a batch; `documents` is empty without a document mask.
struct BatchSpans {
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> targets;
  std::span<std::int32_t> documents = {};
};

enum class DocumentMask : bool { kOff, kOn };

class BatchReader {
 public:
  // `vocabulary` is the model's: a token outside it would read past the embedding. The set must
  // outlive the reader.
  BatchReader(const TokenSet& set, std::uint64_t seed, std::int32_t vocabulary,
              DocumentMask mask = DocumentMask::kOff)
      : BatchReader(WindowMix(set, seed), vocabulary, mask) {}
  // From several sets. With a mask, all shards must say where documents begin.
  BatchReader(WindowMix mix, std::int32_t vocabulary, DocumentMask mask = DocumentMask::kOff)
      : mix_(std::move(mix)), vocabulary_(vocabulary), mask_(mask) {}

  // The only set, or the first one; all have the same sequence length.
  [[nodiscard]] const TokenSet& set() const { return mix_.first_set(); }
  [[nodiscard]] std::vector<const TokenSet*> sets() const { return mix_.sets(); }
  // A shard that says which tokenizer made the tokens of all sets; null if none does.
  [[nodiscard]] const Shard* with_tokenizer() const { return mix_.with_tokenizer(); }

  // Fills `micro` rows of each span. A token outside the vocabulary is an error that names the file
  // and the byte.
  base::Result<void> read(std::uint64_t cursor, const BatchShare& share,
                          const BatchSpans& to) const;
  // The same, resizing the batch.
  base::Result<void> read(std::uint64_t cursor, const BatchShare& share, Batch& batch) const;

  // The number of targets that count among `windows` windows from the cursor on, over all ranks.
  [[nodiscard]] std::uint64_t counted_targets(std::uint64_t cursor, std::uint64_t windows) const;

 private:
  base::Result<void> read_window(std::uint64_t cursor, const BatchShare& share,
                                 std::int32_t* tokens, std::int32_t* targets) const;
  // For a whole window, whose targets have been read.
  void mask_documents(std::uint64_t cursor, std::int32_t* targets, std::int32_t* documents) const;

  WindowMix mix_;
  std::int32_t vocabulary_;
  DocumentMask mask_;
};

}  // namespace assay::data
