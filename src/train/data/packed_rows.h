// PackedRows: documents of several shards, in an order of their own, as rows that each begin with a
// document's first token. A document that does not fit into what is left of a row continues in the
// next one, after another such token; every token is a target exactly once. What does not fill the
// last row is not read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/data/shard.h"
#include "train/data/window_order.h"

namespace assay::data {

class PackedRows {
 public:
  // Rows of `length` tokens. `seed` decides the order of the documents. Reads the lists of
  // documents once. The shards must outlive this object, in their places.
  static base::Result<PackedRows> of(std::span<const Shard> shards, std::uint64_t length,
                                     std::uint64_t seed);

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  // Fills a row; the time does not depend on which one it is.
  void read(std::uint64_t row, std::span<std::uint32_t> tokens) const;
  // Where in the row documents begin, but for its first token.
  void begins(std::uint64_t row, std::vector<std::uint64_t>& found) const;

 private:
  // A place in the sequence of all documents.
  struct Place {
    std::uint64_t document = 0;  // in the order of reading
    std::uint64_t offset = 0;    // tokens of it that were read before
  };
  struct Range {
    const Shard* shard;
    std::uint64_t begin;
    std::uint64_t end;
  };
  PackedRows(std::span<const Shard> shards, std::uint64_t length, std::uint64_t documents,
             std::uint64_t seed);
  [[nodiscard]] Range range_of(std::uint64_t document) const;
  // Moves past one row; false if the documents end first. `tokens` is empty, or gets the row;
  // `begins` is null, or gets where in it documents begin.
  bool advance(Place& place, std::span<std::uint32_t> tokens,
               std::vector<std::uint64_t>* begins = nullptr) const;
  [[nodiscard]] Place place_of(std::uint64_t row) const;

  std::span<const Shard> shards_;
  std::uint64_t length_;
  std::vector<std::uint64_t> ends_;  // documents up to and including this shard
  KeyedPermutation order_;
  std::uint32_t bos_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Place> marks_;  // where every 16th row begins
};

}  // namespace assay::data
