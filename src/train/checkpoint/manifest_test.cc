#include "train/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(Manifest, HostileOnesAreRefused) {
  Manifest good{testing::snapshot_of_step(1).state, 5, {{"weights.safetensors", 3, {}}}};
  ASSERT_TRUE(parse_manifest(manifest_text(good), "m"));
  for (const char* name : {"", ".", "..", "a/b", "/etc/passwd", "manifest.json"}) {
    Manifest bad = good;
    bad.files[0].name = name;
    EXPECT_THAT(parse_manifest(manifest_text(bad), "m").error().line(),
                HasSubstr("m: entry 0 of its files is not valid"));
  }
  Manifest many = good;
  many.files[0].bytes = INT64_MAX;
  many.files.push_back({"b", 1, {}});
  EXPECT_FALSE(parse_manifest(manifest_text(many), "m"));
  for (const char* text : {"", "[]", "{", "{}", "null", "{\"format_version\":2}"}) {
    EXPECT_FALSE(parse_manifest(text, "m")) << text;
  }
  EXPECT_FALSE(parse_manifest(std::string(1'000'000, '['), "m"));
}

}  // namespace
}  // namespace assay::checkpoint
