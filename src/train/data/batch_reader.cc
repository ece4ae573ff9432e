#include "train/data/batch_reader.h"

#include <algorithm>

#include "base/check.h"
#include "train/data/window_copy.h"

namespace assay::data {
namespace {

// `count` tokens of the window, from `from` on.
bool copy_tokens(const Window& window, std::uint64_t from, std::uint64_t count,
                 std::int32_t vocabulary, std::int32_t* tokens, std::int32_t* targets) {
  const std::byte* at =
      window.shard->payload().data() + (window.first + from) * bytes_of(window.shard->type());
  // Payloads are aligned: mappings are, and headers are 256 bytes.
  return window.shard->type() == TokenType::kU16
             ? copy_window(reinterpret_cast<const std::uint16_t*>(at), count, vocabulary, tokens,
                           targets)
             : copy_window(reinterpret_cast<const std::uint32_t*>(at), count, vocabulary, tokens,
                           targets);
}

}  // namespace

base::Result<void> BatchReader::read(std::uint64_t cursor, const RankShare& share,
                                     std::span<std::int32_t> tokens,
                                     std::span<std::int32_t> targets) const {
  const std::uint64_t sequence = set_->sequence();
  const std::uint64_t row_tokens = share.tokens(sequence);
  ASSAY_CHECK(tokens.size() == share.micro * row_tokens && targets.size() == tokens.size(),
              "a micro-batch has micro rows of the rank's tokens of a window");
  ASSAY_CHECK(share.rank < share.ranks, "the rank must be below the number of ranks");
  const std::uint64_t first = cursor + share.rank * share.micro;
  for (std::uint64_t row = 0; row < share.micro; ++row) {
    const Window window = set_->window(order_.window_at(first + row));
    const auto copy = [&](std::uint64_t from, std::uint64_t count, std::size_t at) {
      return copy_tokens(window, from, count, vocabulary_, tokens.data() + at, targets.data() + at);
    };
    const std::size_t at = row * row_tokens;
    bool fits = true;
    if (share.part) {
      ASSAY_CHECK(std::ranges::max(share.part->from) + share.part->length <= sequence,
                  "the pieces of a window must lie in it");
      fits = copy(share.part->from[0], share.part->length, at);
      fits = copy(share.part->from[1], share.part->length, at + share.part->length) && fits;
    } else {
      fits = copy(0, sequence, at);
    }
    ASSAY_TRY_VOID(window.shard->intact());
    if (!fits) {
      ASSAY_TRY_VOID(check_tokens(*window.shard, window.first, sequence + 1,
                                  static_cast<std::uint64_t>(vocabulary_)));
    }
  }
  return {};
}

base::Result<void> BatchReader::read(std::uint64_t cursor, const RankShare& share,
                                     Batch& batch) const {
  const std::size_t size = share.micro * share.tokens(set_->sequence());
  batch.cursor = cursor;
  batch.tokens.resize(size);
  batch.targets.resize(size);
  return read(cursor, share, batch.tokens, batch.targets);
}

}  // namespace assay::data
