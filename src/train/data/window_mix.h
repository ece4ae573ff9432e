// WindowMix: which window of which set is read at a cursor, when windows of several sets are mixed
// by weights. As for one set (window_order.h), the position in the data is the cursor alone, and
// what is read does not depend on the number of ranks.
//
// Cursors are divided into blocks of 65,536. Each block has a fixed number of windows of each set,
// in an order that seed and block decide; the windows of a set are read in its own order, epoch
// after epoch, however often that takes.
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

  // One set, or at most 1,000 with the same sequence. They must outlive this object.
  WindowMix(const TokenSet& set, std::uint64_t seed)
      : WindowMix(std::vector<Part>{{&set, 1}}, seed) {}
  WindowMix(const std::vector<Part>& parts, std::uint64_t seed);

  [[nodiscard]] Place at(std::uint64_t cursor) const;
  [[nodiscard]] const TokenSet& first_set() const { return *sources_.front().set; }
  // A shard of any of the sets that says which tokenizer made it; null if none does.
  [[nodiscard]] const Shard* with_tokenizer() const;

  // How many of a block's windows each set has: at least one, as close to the weights as possible.
  static std::vector<std::uint64_t> shares(std::span<const double> weights);
  static constexpr std::uint64_t kBlock = 65'536;

 private:
  struct Source {
    const TokenSet* set;
    WindowOrder order;
    std::uint64_t begin;  // of its windows in a block
    std::uint64_t share;
  };
  std::vector<Source> sources_;
  std::uint64_t seed_;
};

}  // namespace assay::data
