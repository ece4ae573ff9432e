// How the tensors of one part of a checkpoint are divided into files: NAME.safetensors or, if that
// would be too large, NAME-00001-of-0000K.safetensors with an index in the usual format
// (NAME.safetensors.index.json).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

struct WeightShard {
  std::string file;
  std::span<const Tensor> tensors;
};

// Keeps the order; a shard exceeds the limit only if a single tensor does. At least one shard.
std::vector<WeightShard> plan_shards(const std::string& part, std::span<const Tensor> tensors,
                                     std::int64_t limit_bytes);

std::string index_name(const std::string& part);
std::string index_text(std::span<const WeightShard> shards);

// "weights-00002-of-00003.safetensors" -> {"weights", 3}; "weights.safetensors" -> {"weights", 1}.
struct ShardName {
  std::string part;
  std::int64_t count = 1;
};
std::optional<ShardName> parse_shard_name(std::string_view file);

// A part's name becomes a file name: letters, digits, '_' and '.', not starting with '.'.
base::Result<void> check_part_name(const std::string& part);

}  // namespace assay::checkpoint
