#include "train/data/window_mix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/data/mix.h"

namespace assay::data {

std::vector<std::uint64_t> WindowMix::shares(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto exact = [&](std::size_t i) { return weights[i] / sum * static_cast<double>(kBlock); };
  std::vector<std::uint64_t> shares;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    shares.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::floor(exact(i)))));
  }
  // Rounding differences are added to, or taken from, the shares that come closest to their weights
  // that way.
  auto total = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  const auto missing = [&](std::size_t i) { return exact(i) - static_cast<double>(shares[i]); };
  while (total != kBlock) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      const bool better = total < kBlock
                              ? missing(i) > missing(best)
                              : shares[i] > 1 && (shares[best] == 1 || missing(i) < missing(best));
      if (better) best = i;
    }
    const bool more = total < kBlock;
    shares[best] += more ? 1 : std::uint64_t(-1);
    total += more ? 1 : std::uint64_t(-1);
  }
  return shares;
}

WindowMix::WindowMix(const std::vector<Part>& parts, std::uint64_t seed) : seed_(seed) {
  std::vector<double> weights;
  for (const Part& part : parts) weights.push_back(part.weight);
  const std::vector<std::uint64_t> share = shares(weights);
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // The first set keeps the order that it would have alone.
    const std::uint64_t key = i == 0 ? seed : mix(seed, i);
    sources_.push_back({parts[i].set, WindowOrder(parts[i].set->windows(), key), begin, share[i]});
    begin += share[i];
  }
}

WindowMix::Place WindowMix::at(std::uint64_t cursor) const {
  if (sources_.size() == 1) {
    return {sources_[0].set, sources_[0].order.window_at(cursor)};
  }
  constexpr std::uint64_t kMixKey = 0x6d69787475726573;  // other orders have the same seed
  const std::uint64_t block = cursor / kBlock;
  const std::uint64_t slot =
      KeyedPermutation(kBlock, mix(mix(seed_, kMixKey), block))(cursor % kBlock);
  const auto after = std::ranges::upper_bound(sources_, slot, {}, &Source::begin);
  const Source& source = *std::prev(after);
  return {source.set, source.order.window_at(block * source.share + (slot - source.begin))};
}

std::vector<const TokenSet*> WindowMix::sets() const {
  std::vector<const TokenSet*> sets;
  for (const Source& source : sources_) sets.push_back(source.set);
  return sets;
}

const Shard* WindowMix::with_tokenizer() const {
  for (const Source& source : sources_) {
    if (const Shard* shard = source.set->with_tokenizer()) return shard;
  }
  return nullptr;
}

}  // namespace assay::data
