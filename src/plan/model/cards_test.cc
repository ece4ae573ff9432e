#include "plan/model/cards.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/model/software.h"
#include "spec/load.h"

namespace assay::plan {
namespace {

TEST(Cards, NamesOfRowsAndDrivers) {
  const std::pair<const char*, const char*> cases[] = {
      {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"},
      {"NVIDIA H100 PCIe", "H100-PCIe-80GB"},
      {"NVIDIA H100 NVL", "H100-NVL-94GB"},
      {"NVIDIA H200", "H200-SXM-141GB"},
      {"NVIDIA GH200 480GB", "GH200"},
      {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},
      {"A100 40GB PCIe", "A100-PCIe-40GB"},
      {"NVIDIA B100", "B100-SXM-192GB"},
      {"a100 pcie", "A100-PCIe-80GB"},
      {"A100", "A100-SXM4-80GB"},
      {"NVIDIA GB200", "GB200"},
      {"NVIDIA GB300", "GB300"},
      {"GB300-NVL72", "GB300"},
      {"GB200-NVL72", "GB200"},
      {"NVIDIA B300", "B300"},
      {"B300-SXM-270GB", "B300"},
      {"H100-SXM5-96GB", "H100-SXM5-96GB"},
      {"RTX-PRO-6000-96GB", "RTX-PRO-6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"},
      {"MI355X-288GB", "MI355X"},
      {"AMD Instinct MI300X", "MI300X"},
      {"L40S-48GB", "L40S"},
      {"RTX-5060Ti-16GB", "RTX5060Ti"},
      {"NVIDIA B200", "B200-SXM-180GB"},
      {"NVIDIA H20", "H20"},
      {"NVIDIA L40S", "L40S"},
      {"NVIDIA RTX A6000", "A6000"},
      {"NVIDIA A40", "A40"},
      {"NVIDIA GeForce RTX 5060 Ti", "RTX5060Ti"},
      {"AMD_Instinct_MI250X", "MI250X"},
      {"NVIDIA GeForce RTX 4090", "RTX4090"},
      {"Tesla V100-SXM2-32GB", "V100-SXM2-32GB"},
      {"H100 80GB (96 GPUs)", "H100-SXM5-80GB"},
      {"H100 96 GB", "H100-SXM5-96GB"},
      {"A100-SXM-80GB 400W", "A100-SXM4-80GB"},
      {"A100-40", "A100-SXM4-40GB"},
      {"8xH100", "H100-SXM5-80GB"},
      {"8 x NVIDIA B200", "B200-SXM-180GB"},
      {"4× A100 40GB", "A100-SXM4-40GB"},
      {"H100 SXM, NVLink", "H100-SXM5-80GB"},
      {"h100 nvl", "H100-NVL-94GB"},
      {"B300-NVL16", "B300"},
  };
  for (const auto& [name, sheet] : cases) {
    ASSERT_NE(find_card(name), nullptr) << name;
    EXPECT_EQ(find_card(name)->name, sheet) << name;
  }
  for (const char* name : {"TPU v5", "NVIDIA RTX A4000", "NVIDIA A400", "NVIDIA RTX A1000",
                           "NVIDIA RTX 6000 Ada Generation", "AMD Instinct MI300A"}) {
    EXPECT_FALSE(card_of(name)) << name;
  }
  EXPECT_FALSE(card_of(""));
}

TEST(Cards, BridgesAreOfNvlProducts) {
  EXPECT_EQ(bridged_cards("NVIDIA H100 NVL"), 2);
  EXPECT_EQ(bridged_cards("H100-NVL-94GB"), 2);
  EXPECT_EQ(bridged_cards("h200 nvl"), 2);
  EXPECT_EQ(bridged_cards("H200-NVL4"), 4);
  EXPECT_EQ(bridged_cards("A100 PCIe, NVLink bridges"), 2);
  for (const char* board : {"B300-NVL16", "B200-NVL8", "GB200 NVL72", "GB300-NVL4", "H100 NVLink",
                            "H100-NVL8", "GH200 NVL2", "H100-SXM5-80GB", ""}) {
    EXPECT_EQ(bridged_cards(board), 0) << board;
  }
}

TEST(Cards, EverySheetIsFoundByItsNameAndComplete) {
  for (const CardSheet& sheet : card_table()) {
    EXPECT_EQ(find_card(sheet.name), &sheet) << sheet.name;
    EXPECT_GE(sheet.card.fp8_flops, sheet.card.bf16_flops) << sheet.name;
    EXPECT_GT(sheet.card.bf16_flops, base::FlopsPerSecond(40e12)) << sheet.name;
    EXPECT_GT(sheet.card.memory_rate, base::BytesPerSecond(400e9)) << sheet.name;
    EXPECT_GT(sheet.card.memory, base::Bytes(15'000'000'000)) << sheet.name;
    EXPECT_GT(sheet.card.cache, base::Bytes(1'000'000)) << sheet.name;
    EXPECT_GT(sheet.link, base::BytesPerSecond(10e9)) << sheet.name;
    EXPECT_GT(sheet.network, base::BytesPerSecond(10e9)) << sheet.name;
  }
}

// Rows have the memory of the sheet, jobs that of the preset.
TEST(Cards, PresetsHaveTheMemoryOfTheirSheets) {
  for (const std::string& name : spec::preset_names(spec::Kind::kDevice)) {
    const auto device = std::get<spec::DeviceSpec>(spec::load(name).value().spec);
    if (device.kind != spec::DeviceKind::kGpu || !find_card(device.name)) continue;
    const base::Bytes sheet = find_card(device.name)->card.memory;
    EXPECT_NEAR(device.memory.value() / sheet, 1, 0.01) << name;
  }
}

TEST(Software, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(Framework::kLlmq); ++i) {
    const auto framework = static_cast<Framework>(i);
    EXPECT_EQ(parse_framework(to_text(framework)), framework);
  }
  EXPECT_FALSE(parse_framework("abacus"));
}

TEST(Software, AttentionFollowsFrameworkAndCard) {
  const Card ampere = *card_of("A100-SXM4-80GB");
  const Card hopper = *card_of("H100-SXM5-80GB");
  EXPECT_FALSE(software_of(Framework::kMegatron, ampere).flash);
  EXPECT_TRUE(software_of(Framework::kMegatron, hopper).flash);
  EXPECT_TRUE(software_of(Framework::kTorch, hopper).old_attention);
  EXPECT_FALSE(software_of(Framework::kTorch, ampere).old_attention);
  EXPECT_FALSE(software_of(Framework::kAssay, hopper).old_attention);
}

}  // namespace
}  // namespace assay::plan
