#include "train/checkpoint/shards.h"

#include <gtest/gtest.h>

namespace assay::checkpoint {
namespace {

TEST(Shards, NamesAreRead) {
  EXPECT_EQ(parse_shard_name("weights-00002-of-00003.safetensors")->part, "weights");
  EXPECT_EQ(parse_shard_name("weights-00002-of-00003.safetensors")->count, 3);
  EXPECT_EQ(parse_shard_name("a-of-b.safetensors")->part, "a-of-b");
  EXPECT_EQ(parse_shard_name("-of-.safetensors")->part, "-of-");
  EXPECT_FALSE(parse_shard_name("weights.safetensors.index.json"));
}

}  // namespace
}  // namespace assay::checkpoint
