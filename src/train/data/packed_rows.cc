#include "train/data/packed_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/data/mix.h"

namespace assay::data {
namespace {

// Rows between two marks: finding a row walks over at most this many.
constexpr std::uint64_t kRowsPerMark = 16;

// Makes the order of documents independent of that of rows, which has the same seed.
constexpr std::uint64_t kOrderKey = 0x646f63756d656e74;

base::Result<void> check_shard(const Shard& shard, std::uint32_t bos) {
  const auto& header = shard.documents_header();
  if (!header || !header->bos) {
    return base::fail(base::usage_error(
        shard.where(),
        header ? "no token begins its documents" : "does not say where documents begin",
        "data.pack = \"documents\" needs shards of `assay data tokenize` with --bos"));
  }
  if (*header->bos != bos) {
    return base::fail(base::usage_error(
        shard.where(),
        fmt::format("its documents begin with token {}, others with {}", *header->bos, bos)));
  }
  return shard.check_documents();
}

}  // namespace

PackedRows::PackedRows(std::span<const Shard> shards, std::uint64_t length, std::uint64_t documents,
                       std::uint64_t seed)
    : shards_(shards), length_(length), order_(documents, mix(seed, kOrderKey)) {}

base::Result<PackedRows> PackedRows::of(std::span<const Shard> shards, std::uint64_t length,
                                        std::uint64_t seed) {
  const auto& header = shards.front().documents_header();
  const std::uint32_t bos = header ? header->bos.value_or(0) : 0;
  std::vector<std::uint64_t> ends;
  std::uint64_t documents = 0;
  for (const Shard& shard : shards) {
    ASSAY_TRY_VOID(check_shard(shard, bos));
    documents += shard.documents().size();
    ends.push_back(documents);
  }
  PackedRows rows(shards, length, std::max<std::uint64_t>(documents, 1), seed);
  rows.ends_ = std::move(ends);
  rows.bos_ = bos;
  Place place;
  while (true) {
    const Place begin = place;
    if (!rows.advance(place, {})) break;
    if (rows.rows_ % kRowsPerMark == 0) rows.marks_.push_back(begin);
    ++rows.rows_;
  }
  return rows;
}

PackedRows::Range PackedRows::range_of(std::uint64_t document) const {
  const std::uint64_t index = order_(document);
  const auto end = std::ranges::upper_bound(ends_, index);
  const auto number = static_cast<std::size_t>(end - ends_.begin());
  const Shard& shard = shards_[number];
  const auto starts = shard.documents();
  const auto at = static_cast<std::size_t>(index - (number == 0 ? 0 : ends_[number - 1]));
  return {&shard, starts[at], at + 1 < starts.size() ? starts[at + 1] : shard.count()};
}

bool PackedRows::advance(Place& place, std::span<std::uint32_t> tokens,
                         std::vector<std::uint64_t>* begins) const {
  std::uint64_t filled = 0;
  if (place.offset > 0) {
    if (!tokens.empty()) tokens[0] = bos_;
    filled = 1;
  }
  while (filled < length_) {
    if (place.document == ends_.back()) return false;
    const Range range = range_of(place.document);
    const std::uint64_t left = range.end - range.begin - place.offset;
    const std::uint64_t count = std::min(left, length_ - filled);
    if (begins != nullptr && filled > 0 && place.offset == 0) begins->push_back(filled);
    if (!tokens.empty()) {
      for (std::uint64_t i = 0; i < count; ++i) {
        tokens[filled + i] = range.shard->token(range.begin + place.offset + i);
      }
    }
    filled += count;
    place.offset += count;
    if (count == left) place = {place.document + 1, 0};
  }
  return true;
}

PackedRows::Place PackedRows::place_of(std::uint64_t row) const {
  Place place = marks_[row / kRowsPerMark];
  for (std::uint64_t i = 0; i < row % kRowsPerMark; ++i) advance(place, {});
  return place;
}

void PackedRows::read(std::uint64_t row, std::span<std::uint32_t> tokens) const {
  Place place = place_of(row);
  advance(place, tokens);
}

void PackedRows::begins(std::uint64_t row, std::vector<std::uint64_t>& found) const {
  Place place = place_of(row);
  found.clear();
  advance(place, {}, &found);
}

}  // namespace assay::data
