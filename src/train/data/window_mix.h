// WindowMix: maps a cursor to a window of one of several sets, which are mixed by weight. As for
// one set (window_order.h), the cursor alone is the position in the data, and the result does not
// depend on the number of ranks.
//
// Cursors are divided into blocks of 65,536. Each block has a fixed number of windows from each
// set, shuffled by seed and block; each set's windows are read in the set's own order, for as many
// epochs as needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/data/token_set.h"
#include "train/data/window_order.h"

namespace assay::data {

class WindowMix {
 public:
  struct Part {
    const TokenSet* set;
    double weight;  // positive; relative to the others
  };
  struct Place {
    const TokenSet* set;
    std::uint64_t window;
  };

  // One set, or at most 1,000 sets with the same sequence length. They must outlive this object.
  WindowMix(const TokenSet& set, std::uint64_t seed)
      : WindowMix(std::vector<Part>{{&set, 1}}, seed) {}
  WindowMix(const std::vector<Part>& parts, std::uint64_t seed);

  [[nodiscard]] Place at(std::uint64_t cursor) const;
  [[nodiscard]] const TokenSet& first_set() const { return *sources_.front().set; }
  [[nodiscard]] std::vector<const TokenSet*> sets() const;
  // A shard of any of the sets that names its tokenizer; null if none does.
  [[nodiscard]] const Shard* with_tokenizer() const;

  // The number of windows of each set per block: at least one, as close to the weights as possible.
  static std::vector<std::uint64_t> shares(std::span<const double> weights);
  static constexpr std::uint64_t kBlock = 65'536;

 private:
  struct Source {
    const TokenSet* set;
    WindowOrder order;
    std::uint64_t begin;  // of its share of a block
    std::uint64_t share;
  };
  std::vector<Source> sources_;
  std::uint64_t seed_;
};

}  // namespace assay::data
