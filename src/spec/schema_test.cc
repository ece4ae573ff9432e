// The list of keys that documentation and completion are made from.
#include "spec/schema.h"

#include <gtest/gtest.h>

#include <map>

namespace assay::spec {
namespace {

std::map<std::string, KeyDoc> keys_by_path() {
  std::map<std::string, KeyDoc> keys;
  for (const KeyDoc& key : all_keys()) {
    EXPECT_TRUE(keys.emplace(key.path, key).second) << key.path << " twice";
  }
  return keys;
}

TEST(Schema, ListsWhatIsNoFieldOfAnyStruct) {
  const auto keys = keys_by_path();
  for (const char* path : {"extends", "description", "model.extends", "layout.extends",
                           "cluster.extends", "cluster.device.extends", "device.extends"}) {
    EXPECT_TRUE(keys.contains(path)) << path;
  }
  for (const char* path : {"batch.extends", "train.extends", "price.extends",
                           "cluster.link.extends", "cluster.network.extends", "price"}) {
    EXPECT_FALSE(keys.contains(path)) << path;
  }
}

TEST(Schema, ExpectationsAreForPeople) {
  const auto keys = keys_by_path();
  EXPECT_EQ(keys.at("model.layers").expected, "a whole number from 1 to 100,000");
  EXPECT_EQ(keys.at("train.tokens_per_matmul_parameter").expected,
            "a number from 0.000001 to 1,000,000,000");
  EXPECT_EQ(keys.at("train.steps").expected, "a whole number from 1 to 100,000,000,000,000,000");
  EXPECT_EQ(keys.at("cluster.host_memory").expected, "a size such as \"80 GiB\"");
  EXPECT_EQ(keys.at("cluster.max_nodes").fallback, "nodes");
  EXPECT_EQ(keys.at("cluster.network.ports").fallback, "unset");
}

}  // namespace
}  // namespace assay::spec
