#include "train/data/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggestion.h"
#include "base/text.h"
#include "train/data/mix.h"
#include "train/data/shard_writer.h"
#include "train/data/window_order.h"

namespace assay::data {
namespace {

constexpr std::size_t kSynthChunk = 1 << 16;
constexpr std::size_t kSuccessors = 4;
// The successor tables of all tokens are held in memory.
constexpr std::uint64_t kMostSynthVocabulary = std::uint64_t{1} << 24;

class MarkovSource {
 public:
  MarkovSource(std::uint64_t vocabulary, std::uint64_t seed)
      : last_(static_cast<std::uint32_t>(below(vocabulary, mix(seed)))) {
    for (std::size_t k = 0; k < kSuccessors; ++k) {
      // Permutations, so that all tokens are about equally frequent.
      const KeyedPermutation successor(vocabulary, mix(seed, k));
      successors_[k].resize(vocabulary);
      for (std::uint64_t token = 0; token < vocabulary; ++token) {
        successors_[k][token] = static_cast<std::uint32_t>(successor(token));
      }
    }
  }

  std::uint32_t next(std::uint64_t random) {
    // Half of the time the token before last selects the successor, otherwise chance: 1/2, 1/4,
    // 1/8, 1/8.
    static constexpr std::array<std::size_t, 8> kByChance = {0, 0, 0, 0, 1, 1, 2, 3};
    const std::size_t k = (random & 1) != 0 ? before_ % kSuccessors : kByChance[random >> 1 & 7];
    before_ = last_;
    last_ = successors_[k][last_];
    return last_;
  }

 private:
  std::array<std::vector<std::uint32_t>, kSuccessors> successors_;
  std::uint32_t last_;
  std::uint32_t before_ = 0;
};

}  // namespace

std::vector<std::string> synth_kind_names() {
  return {"uniform", "markov"};
}

base::Result<SynthKind> parse_synth_kind(std::string_view name) {
  if (name == "uniform") return SynthKind::kUniform;
  if (name == "markov") return SynthKind::kMarkov;
  return base::fail(base::usage_error("--kind", fmt::format("unknown kind '{}'", name),
                                      base::suggestion(name, synth_kind_names())));
}

base::Result<ShardHeader> synthesize(const SynthRequest& request) {
  if (request.vocabulary == 0 || request.vocabulary > kMostSynthVocabulary) {
    return base::fail(base::usage_error(
        "--vocab",
        fmt::format("{} is not between 1 and {}", request.vocabulary, kMostSynthVocabulary)));
  }
  ASSAY_TRY(ShardWriter shard, ShardWriter::create(request.output, request.vocabulary));
  const bool markov = request.kind == SynthKind::kMarkov;
  MarkovSource source(markov ? request.vocabulary : 1, request.seed);
  std::vector<std::uint32_t> tokens;
  for (std::uint64_t done = 0; done < request.tokens; done += tokens.size()) {
    tokens.resize(std::min<std::uint64_t>(kSynthChunk, request.tokens - done));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::uint64_t random = mix(request.seed, done + i);
      tokens[i] = markov ? source.next(random)
                         : static_cast<std::uint32_t>(below(request.vocabulary, random));
    }
    ASSAY_TRY_VOID(shard.append(tokens));
    if (request.progress) request.progress(static_cast<std::int64_t>(tokens.size()));
  }
  return shard.finish();
}

}  // namespace assay::data
