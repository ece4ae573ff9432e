// PackedRows: packs the shuffled documents of several shards into rows. Each row begins with the
// token that precedes documents (bos). A document that does not fit into the rest of a row
// continues in the next row, after another bos; every token is a target exactly once. An incomplete
// last row is dropped.
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
  // Rows of `length` tokens. `seed` determines the order of the documents. Reads the lists of
  // documents once. The shards must outlive this object and must not move.
  static base::Result<PackedRows> of(std::span<const Shard> shards, std::uint64_t length,
                                     std::uint64_t seed);

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  // Fills a row, in time that does not depend on its index.
  void read(std::uint64_t row, std::span<std::uint32_t> tokens) const;
  // Positions in the row at which documents begin, except its first token.
  void begins(std::uint64_t row, std::vector<std::uint64_t>& found) const;

 private:
  // A position in the sequence of all documents.
  struct Place {
    std::uint64_t document = 0;  // in the order of reading
    std::uint64_t offset = 0;    // tokens of it already read
  };
  struct Range {
    const Shard* shard;
    std::uint64_t begin;
    std::uint64_t end;
  };
  PackedRows(std::span<const Shard> shards, std::uint64_t length, std::uint64_t documents,
             std::uint64_t seed);
  [[nodiscard]] Range range_of(std::uint64_t document) const;
  // Moves past one row; false if the documents end before that. `tokens` is empty, or receives the
  // row; `begins` is null, or receives the positions at which documents begin.
  bool advance(Place& place, std::span<std::uint32_t> tokens,
               std::vector<std::uint64_t>* begins = nullptr) const;
  [[nodiscard]] Place place_of(std::uint64_t row) const;

  std::span<const Shard> shards_;
  std::uint64_t length_;
  std::vector<std::uint64_t> ends_;  // number of documents in all shards up to this one
  KeyedPermutation order_;
  std::uint32_t bos_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Place> marks_;  // position of every 16th row
};

}  // namespace assay::data
