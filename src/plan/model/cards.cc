#include "plan/model/cards.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace assay::plan {
namespace {

// Memory comes in powers of two, whatever data sheets call it.
constexpr std::int64_t kSheetGb = std::int64_t{1} << 30;

// In the units of data sheets: dense TFLOP/s of bf16 and fp8 (bf16's where there is no fp8), GB/s,
// W, MB of L2, GB, GB/s per direction of the link, GB/s of network per card.
constexpr CardSheet sheet(std::string_view name, double bf16, double fp8, double memory_rate,
                          double multiprocessors, double watts, std::int64_t cache,
                          std::int64_t memory, double link, double network) {
  return {.name = name,
          .card = {.bf16_flops = base::FlopsPerSecond(bf16 * 1e12),
                   .fp8_flops = base::FlopsPerSecond(fp8 * 1e12),
                   .memory_rate = base::BytesPerSecond(memory_rate * 1e9),
                   .multiprocessors = multiprocessors,
                   .watts = base::Watts(watts),
                   .cache = base::Bytes(cache * 1'000'000),
                   .memory = base::Bytes(memory * kSheetGb)},
          .link = base::BytesPerSecond(link * 1e9),
          .network = base::BytesPerSecond(network * 1e9)};
}

constexpr std::array<CardSheet, 24> kCardSheets = {{
    sheet("A100-SXM4-40GB", 312, 312, 1555, 108, 400, 40, 40, 300, 25),
    sheet("A100-SXM4-80GB", 312, 312, 2039, 108, 400, 40, 80, 300, 25),
    sheet("A100-PCIe-80GB", 312, 312, 1935, 108, 300, 40, 80, 32, 12.5),
    sheet("A100-PCIe-40GB", 312, 312, 1555, 108, 250, 40, 40, 32, 12.5),
    sheet("A800", 312, 312, 2039, 108, 400, 40, 80, 200, 25),
    sheet("H100-SXM5-80GB", 989, 1979, 3350, 132, 700, 50, 80, 450, 50),
    sheet("H100-PCIe-80GB", 756, 1513, 2000, 114, 350, 50, 80, 64, 25),
    sheet("H100-NVL-94GB", 835, 1671, 3900, 132, 400, 50, 94, 300, 25),
    sheet("H200-SXM-141GB", 989, 1979, 4800, 132, 700, 50, 141, 450, 50),
    sheet("H800", 989, 1979, 3350, 132, 700, 50, 80, 200, 50),
    sheet("H20", 148, 296, 4000, 78, 400, 60, 96, 450, 50),
    sheet("GH200", 989, 1979, 4000, 132, 700, 50, 96, 450, 50),
    sheet("B100-SXM-192GB", 1750, 3500, 8000, 148, 700, 126, 192, 900, 50),
    sheet("B200-SXM-180GB", 2250, 4500, 8000, 148, 1000, 126, 180, 900, 50),
    sheet("GB200", 2500, 5000, 8000, 148, 1200, 126, 186, 900, 50),
    sheet("B300", 2250, 4500, 8000, 148, 1400, 126, 270, 900, 100),
    sheet("V100-SXM2-32GB", 125, 125, 900, 80, 300, 6, 32, 150, 12.5),
    sheet("A40", 150, 150, 696, 84, 300, 6, 48, 32, 12.5),
    sheet("A6000", 155, 155, 768, 84, 300, 6, 48, 32, 12.5),
    sheet("L40S", 362, 733, 864, 142, 350, 96, 48, 32, 12.5),
    sheet("RTX4090", 165, 330, 1008, 128, 450, 72, 24, 16, 12.5),
    sheet("RTX3090", 71, 71, 936, 82, 350, 6, 24, 16, 12.5),
    sheet("MI250X", 191, 191, 1638, 110, 280, 8, 64, 50, 25),
    sheet("MI300X", 1307, 2615, 5300, 304, 750, 256, 192, 448, 50),
}};

const CardSheet* by_name(std::string_view name) {
  const auto* at = std::find_if(kCardSheets.begin(), kCardSheets.end(),
                                [&](const CardSheet& card) { return card.name == name; });
  return at == kCardSheets.end() ? nullptr : at;
}

// What a name contains, and which card that is. The first that is contained counts, so longer
// names stand before those inside them.
struct CardWord {
  std::string_view word;
  std::string_view name;
};
constexpr std::array<CardWord, 17> kCardWords = {{
    {"GB200", "GB200"},
    {"GH200", "GH200"},
    {"B300", "B300"},
    {"B100", "B100-SXM-192GB"},
    {"B200", "B200-SXM-180GB"},
    {"H200", "H200-SXM-141GB"},
    {"H800", "H800"},
    {"H20", "H20"},
    {"A800", "A800"},
    {"V100", "V100-SXM2-32GB"},
    {"L40S", "L40S"},
    {"A6000", "A6000"},
    {"A40", "A40"},
    {"4090", "RTX4090"},
    {"3090", "RTX3090"},
    {"MI250", "MI250X"},
    {"MI300", "MI300X"},
}};

}  // namespace

std::span<const CardSheet> card_table() {
  return kCardSheets;
}

const CardSheet* find_card(std::string_view name) {
  if (const CardSheet* card = by_name(name)) return card;
  std::string upper(name);
  for (char& c : upper) {
    if (base::is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  const auto has = [&](std::string_view word) { return upper.find(word) != std::string::npos; };
  if (const std::size_t a100 = upper.find("A100"); a100 != std::string::npos) {
    if (upper.find("40", a100 + 4) != std::string::npos)
      return by_name(has("PCIE") ? "A100-PCIe-40GB" : "A100-SXM4-40GB");
    return by_name(has("PCIE") ? "A100-PCIe-80GB" : "A100-SXM4-80GB");
  }
  if (has("H100")) {
    if (has("PCIE")) return by_name("H100-PCIe-80GB");
    return by_name(has("NVL") ? "H100-NVL-94GB" : "H100-SXM5-80GB");
  }
  for (const CardWord& known : kCardWords) {
    if (has(known.word)) return by_name(known.name);
  }
  return nullptr;
}

std::optional<Card> card_of(std::string_view name) {
  const CardSheet* sheet = find_card(name);
  return sheet == nullptr ? std::nullopt : std::optional(sheet->card);
}

}  // namespace assay::plan
