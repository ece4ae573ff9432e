#include "lineage/pack/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "base/json.h"
#include "lineage/testing/random_runs.h"
#include "store/testing/runs.h"

namespace assay::lineage {
namespace {

using ::testing::HasSubstr;

PackManifest manifest_of(std::vector<store::RunRecord> runs) {
  PackManifest manifest;
  manifest.project = "/project";
  manifest.artifact_path = "/project/out";
  std::size_t number = 0;
  for (store::RunRecord& run : runs) {
    run.uid = fmt::format("{:016x}", ++number);
    for (const store::Input& input : run.inputs) {
      if (input.blake3) manifest.contents[*input.blake3] = {input.size, false};
    }
  }
  manifest.runs = std::move(runs);
  return manifest;
}

// Writing and parsing a manifest gives the same manifest.
RC_GTEST_PROP(ManifestProperty, ComesBack, ()) {
  const PackManifest manifest = manifest_of(*testing::random_runs());
  const auto text = manifest_text(manifest);
  RC_ASSERT(text.has_value());
  const auto again = parse_manifest(*text, "test");
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->runs.size() == manifest.runs.size());
  for (std::size_t i = 0; i < manifest.runs.size(); ++i) {
    const store::RunRecord& run = manifest.runs[i];
    const store::RunRecord& read = again->runs[i];
    RC_ASSERT(read.command == run.command);
    RC_ASSERT(read.context.environment == run.context.environment);
    RC_ASSERT(read.inputs.size() == run.inputs.size());
    RC_ASSERT(read.outputs.size() == run.outputs.size());
    for (std::size_t j = 0; j < run.outputs.size(); ++j) {
      RC_ASSERT(read.outputs[j].path == run.outputs[j].path);
      RC_ASSERT(read.outputs[j].blake3 == run.outputs[j].blake3);
      RC_ASSERT(read.outputs[j].status == run.outputs[j].status);
      RC_ASSERT(read.outputs[j].from == run.outputs[j].from);
      RC_ASSERT(read.outputs[j].before == run.outputs[j].before);
    }
  }
  RC_ASSERT(*manifest_text(*again) == *text);
}

// A damaged manifest is refused or still valid; its paths are always allowed ones.
RC_GTEST_PROP(ManifestProperty, DamageIsRefusedOrHarmless, ()) {
  std::string text = *manifest_text(manifest_of({store::testing::run_of("a in=1 -> out=2")}));
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.erase(at, *rc::gen::inRange<std::size_t>(1, 20));
        break;
      default:
        text.insert(at, *rc::gen::element<std::string>("/../", "\"", "[", "{}", "null", "-1", "/",
                                                       "\\u0000", "99999999999999999999"));
    }
    if (text.empty()) text = "x";
  }
  const auto read = parse_manifest(text, "test");
  if (!read) {
    RC_ASSERT(read.error().code == base::ExitCode::kUsage);
    return;
  }
  for (const store::RunRecord& run : read->runs) {
    for (const store::Input& input : run.inputs) {
      RC_ASSERT(input.path.starts_with('/'));
      RC_ASSERT(input.path.find("/../") == std::string::npos);
      RC_ASSERT(!input.path.ends_with("/.."));
    }
  }
}

TEST(Manifest, ReservedPaths) {
  EXPECT_TRUE(is_reserved("/p/.git/config", "/p"));
  EXPECT_TRUE(is_reserved("/p/sub/.git/hooks/x", "/p"));
  EXPECT_TRUE(is_reserved("/p/.assay/assay.db", "/p"));
  EXPECT_TRUE(is_reserved("/other/.git/x", "/p"));
  EXPECT_FALSE(is_reserved("/p/.github/x", "/p"));
  EXPECT_FALSE(is_reserved("/p/.assayignore", "/p"));
  EXPECT_FALSE(is_reserved("/p/.assay-unpack/x", "/p"));
  EXPECT_FALSE(is_reserved("/home/.assay-copies/p/x", "/home/.assay-copies/p"));
}

TEST(Manifest, NamesThatAreNotUtf8CannotBePacked) {
  store::RunRecord run = store::testing::run_of("a in=1 -> out=2");
  run.command.push_back("caf\xe9");
  const auto text = manifest_text(manifest_of({run}));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().line(), HasSubstr("is not UTF-8"));
}

}  // namespace
}  // namespace assay::lineage
