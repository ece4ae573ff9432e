#include "train/data/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "train/data/window_copy.h"

namespace assay::data {
namespace {

// Copies a rank's tokens of a window: all, or two pieces. `copy` gets their start in the window,
// their number, and their destination.
template <class Copy>
bool copy_share(const BatchShare& share, std::uint64_t sequence, const Copy& copy) {
  if (!share.part) return copy(0, sequence, 0);
  const WindowPart& part = *share.part;
  ASSAY_CHECK(std::ranges::max(part.from) + part.length <= sequence,
              "the pieces of a window must lie in it");
  const bool first = copy(part.from[0], part.length, 0);
  return copy(part.from[1], part.length, part.length) && first;
}

}  // namespace

base::Result<void> BatchReader::read_window(std::uint64_t cursor, const BatchShare& share,
                                            std::int32_t* tokens, std::int32_t* targets) const {
  const WindowMix::Place place = mix_.at(cursor);
  const std::uint64_t sequence = place.set->sequence();
  const auto copy_from = [&](const auto* window) {
    return copy_share(
        share, sequence, [&](std::uint64_t from, std::uint64_t count, std::size_t at) {
          return copy_window(window + from, count, vocabulary_, tokens + at, targets + at);
        });
  };
  if (const PackedRows* packed = place.set->packed()) {
    std::vector<std::uint32_t> row(sequence + 1);
    packed->read(place.window, row);
    const bool fits = copy_from(row.data());
    for (const Shard& shard : place.set->shards()) ASSAY_TRY_VOID(shard.intact());
    if (fits) return {};
    for (const Shard& shard : place.set->shards()) {
      ASSAY_TRY_VOID(
          check_tokens(shard, 0, shard.count(), static_cast<std::uint64_t>(vocabulary_)));
    }
    // The remaining case is the token before every document (bos), with which rows begin that
    // continue a document.
    return base::fail(base::usage_error(
        place.set->shards().front().where(),
        fmt::format("its documents begin with a token outside the vocabulary of {}", vocabulary_),
        "these tokens were made with another tokenizer"));
  }
  const Window window = place.set->window(place.window);
  const std::byte* at =
      window.shard->payload().data() + window.first * bytes_of(window.shard->type());
  // Payloads are aligned: mappings are, and headers are 256 bytes.
  const bool fits = window.shard->type() == TokenType::kU16
                        ? copy_from(reinterpret_cast<const std::uint16_t*>(at))
                        : copy_from(reinterpret_cast<const std::uint32_t*>(at));
  ASSAY_TRY_VOID(window.shard->intact());
  if (fits) return {};
  return check_tokens(*window.shard, window.first, sequence + 1,
                      static_cast<std::uint64_t>(vocabulary_));
}

void BatchReader::mask_documents(std::uint64_t cursor, std::int32_t* targets,
                                 std::int32_t* documents) const {
  const WindowMix::Place place = mix_.at(cursor);
  std::vector<std::uint64_t> begins;
  place.set->begins(place.window, begins);
  std::uint64_t from = 0;
  std::int32_t* const end = documents + place.set->sequence();
  for (const std::uint64_t begin : begins) {
    targets[begin - 1] = -1;
    std::fill(documents + from, documents + begin, static_cast<std::int32_t>(from));
    from = begin;
  }
  std::fill(documents + from, end, static_cast<std::int32_t>(from));
}

std::uint64_t BatchReader::counted_targets(std::uint64_t cursor, std::uint64_t windows) const {
  std::uint64_t counted = windows * set().sequence();
  if (mask_ == DocumentMask::kOff) return counted;
  std::vector<std::uint64_t> begins;
  for (std::uint64_t i = 0; i < windows; ++i) {
    const WindowMix::Place place = mix_.at(cursor + i);
    place.set->begins(place.window, begins);
    counted -= begins.size();
  }
  return counted;
}

base::Result<void> BatchReader::read(std::uint64_t cursor, const BatchShare& share,
                                     const BatchSpans& to) const {
  const std::uint64_t row_tokens = share.tokens(set().sequence());
  ASSAY_CHECK(to.tokens.size() == share.micro * row_tokens && to.targets.size() == to.tokens.size(),
              "a micro-batch has micro rows of the rank's tokens of a window");
  ASSAY_CHECK(share.rank < share.ranks, "the rank must be below the number of ranks");
  const bool masks = mask_ == DocumentMask::kOn;
  ASSAY_CHECK(!masks || (!share.part && to.documents.size() == to.tokens.size()),
              "documents are masked in whole windows");
  const std::uint64_t first = cursor + share.rank * share.micro;
  for (std::uint64_t row = 0; row < share.micro; ++row) {
    const std::size_t at = row * row_tokens;
    ASSAY_TRY_VOID(read_window(first + row, share, to.tokens.data() + at, to.targets.data() + at));
    if (masks) mask_documents(first + row, to.targets.data() + at, to.documents.data() + at);
  }
  return {};
}

base::Result<void> BatchReader::read(std::uint64_t cursor, const BatchShare& share,
                                     Batch& batch) const {
  const std::size_t size = share.micro * share.tokens(set().sequence());
  batch.cursor = cursor;
  batch.tokens.resize(size);
  batch.targets.resize(size);
  if (mask_ == DocumentMask::kOn) batch.documents.resize(size);
  return read(cursor, share, BatchSpans{batch.tokens, batch.targets, batch.documents});
}

}  // namespace assay::data
