// How the tensors of one part of a checkpoint are spread over files: NAME.safetensors, or, when
// that would be too large, NAME-00001-of-0000K.safetensors and an index in the form that others
// read (NAME.safetensors.index.json).
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

struct Shard {
  std::string file;
  std::span<const Tensor> tensors;
};

// In their order; a shard is over the limit only if one tensor alone is. Always at least one.
std::vector<Shard> plan_shards(const std::string& part, std::span<const Tensor> tensors,
                               std::int64_t limit_bytes);

std::string index_name(const std::string& part);
std::string index_text(std::span<const Shard> shards);

// "weights-00002-of-00003.safetensors" -> {"weights", 3}; "weights.safetensors" -> {"weights", 1}.
struct ShardName {
  std::string part;
  std::int64_t count = 1;
};
std::optional<ShardName> parse_shard_name(std::string_view file);

// A part's name becomes a file's: letters, digits, '_' and '.', not first a '.'.
base::Result<void> check_part_name(const std::string& part);

}  // namespace assay::checkpoint
