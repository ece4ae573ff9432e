// Synthetic tokens: the same parameters give the same file on every machine, so benchmarks and
// tests of the trainer need no download.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/shard_format.h"

namespace assay::data {

enum class SynthKind : std::uint8_t {
  // Every token equally likely: nothing to learn, the loss stays at ln(vocabulary).
  kUniform,
  // Each token has four possible successors; half of the time the token before it selects one, else
  // chance: the loss falls from ln(vocabulary) to about 1.3 for a model that sees one
  // token, and to about 1.0 for one that sees two.
  kMarkov,
};

std::vector<std::string> synth_kind_names();
base::Result<SynthKind> parse_synth_kind(std::string_view name);

struct SynthRequest {
  std::filesystem::path output;
  std::uint64_t tokens = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t seed = 0;
  SynthKind kind = SynthKind::kMarkov;
  std::function<void(std::int64_t)> progress = {};  // called with the number of tokens just written
};

base::Result<ShardHeader> synthesize(const SynthRequest& request);

}  // namespace assay::data
