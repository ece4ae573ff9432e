// Every preset is valid and has what a preset needs: a name, a date, a source.
#include "spec/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "spec/load.h"
#include "spec/parameters.h"

namespace assay::spec {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

TEST(Presets, NamesAreUniqueOverAllKinds) {
  std::set<std::string> seen;
  for (const Preset& preset : presets())
    EXPECT_TRUE(seen.insert(preset.name).second) << preset.name;
}

TEST(Presets, EveryPresetLoadsAsItsKindAndDescribesItself) {
  for (const Preset& preset : presets()) {
    const auto loaded = load(preset.name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
    EXPECT_EQ(loaded->kind(), preset.kind) << preset.name;
    EXPECT_EQ(loaded->name, preset.name);
    EXPECT_FALSE(loaded->description.empty()) << preset.name;
  }
}

TEST(Presets, TheExpectedOnesAreThere) {
  EXPECT_THAT(preset_names(Kind::kModel),
              IsSupersetOf({"tiny", "gpt2-124m", "llama3-8b", "llama3-13b", "llama3-70b", "moe-9b",
                            "nanochat-d12", "nanochat-d15", "nanochat-d20", "nanochat-d24",
                            "nanochat-d26", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-moe-16b",
                            "deepseek-moe-16b-sigmoid"}));
  EXPECT_THAT(
      preset_names(Kind::kCluster),
      IsSupersetOf({"h100-sxm-8", "h100-pcie-8", "h100-nvl-8", "h200-1", "h200-4-ib",
                    "p4d-24xlarge", "b200-sxm-8", "b300-sxm-8", "gb200-nvl72", "gb300-nvl72",
                    "h20-sxm-8", "l40s-8", "rtx-4090-8", "mi300x-8", "this-machine"}));
}

TEST(Presets, KindsAreListedWithTheirNames) {
  std::vector<std::string> plurals;
  std::set<Kind> kinds;
  for (const Kind kind : all_kinds()) {
    plurals.emplace_back(kind_plural(kind));
    kinds.insert(kind);
  }
  EXPECT_EQ(plurals, (std::vector<std::string>{"models", "jobs", "clusters", "devices", "layouts",
                                               "prices"}));
  EXPECT_EQ(kinds.size(), std::variant_size_v<AnySpec>);
  EXPECT_EQ(to_text(Kind::kPrices), "prices");
  EXPECT_EQ(to_text(Kind::kJob), "job");
  EXPECT_EQ(kind_section(Kind::kPrices), "price");
}

TEST(Presets, NamesSortAsPeopleCount) {
  const auto names = preset_names(Kind::kModel);
  const auto at = [&](const char* name) { return std::find(names.begin(), names.end(), name); };
  EXPECT_LT(at("llama3-8b"), at("llama3-13b"));
  EXPECT_LT(at("llama3-13b"), at("llama3-70b"));
}

// nanochat's depth d: C = ceil(64 d / 128) * 128, heads of 128, ffn 4 C.
TEST(Presets, NanochatShapesFollowTheirDepth) {
  for (const int depth : {12, 15, 20, 24, 26}) {
    const auto loaded = load("nanochat-d" + std::to_string(depth));
    ASSERT_TRUE(loaded.has_value());
    const auto& model = std::get<ModelSpec>(loaded->spec);
    const std::int64_t dim = (64 * depth + 127) / 128 * 128;
    EXPECT_EQ(model.layers, depth);
    EXPECT_EQ(model.dim, dim);
    EXPECT_EQ(model.heads, dim / 128);
    EXPECT_EQ(model.kv_heads, dim / 128);
    EXPECT_EQ(model.ffn, 4 * dim);
    EXPECT_EQ(model.vocab, 32768);
  }
}

TEST(Presets, ClustersOfSeveralSizesTakeEverySizeAndNoMore) {
  for (const auto& [name, most] : {std::pair{"h200-4-ib", 8}, std::pair{"p4d-24xlarge", 16}}) {
    for (int nodes = 1; nodes <= most; ++nodes) {
      const std::vector<std::string> set = {"cluster.nodes=" + std::to_string(nodes)};
      EXPECT_TRUE(load(name, {.overrides = set}).has_value()) << name << " x " << nodes;
    }
    const std::vector<std::string> set = {"cluster.nodes=" + std::to_string(most + 1)};
    EXPECT_FALSE(load(name, {.overrides = set}).has_value()) << name;
  }
}

TEST(Presets, EveryPriceIsDatedSourcedAndOfAKnownDevice) {
  const auto prices = preset_prices();
  ASSERT_TRUE(prices.has_value());
  std::set<Market> markets;
  for (const PriceSpec& price : *prices) {
    EXPECT_GE(price.date.year, 2026) << price.offer;
    EXPECT_EQ(price.per_hour.low.as_of(), price.date) << "the date travels with the money";
    EXPECT_FALSE(price.source.empty());
    EXPECT_THAT(preset_names(Kind::kDevice), Contains(price.device));
    markets.insert(price.market);
  }
  EXPECT_EQ(markets.size(), 2U) << "on-demand and spot";
}

TEST(Presets, TheNanochatJobHasThePublishedLength) {
  const auto loaded = load("nanochat-d26-h100");
  ASSERT_TRUE(loaded.has_value());
  const auto& job = std::get<JobSpec>(loaded->spec);
  EXPECT_EQ(job.tokens_per_step(), 524'288);
  EXPECT_EQ(training_steps(job), 14'889);
}

}  // namespace
}  // namespace assay::spec
