#include "plan/model/cards.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace assay::plan {
namespace {

// Memory comes in powers of two, whatever data sheets call it. Of an L40S's 48, error correction,
// which is on by default, takes a sixteenth.
constexpr std::int64_t kSheetGb = std::int64_t{1} << 30;

// In the units of data sheets: dense TFLOP/s of bf16, fp8 (bf16's where there is no fp8) and fp4
// (0: none), GB/s, W, MB of L2, GB, GB/s per direction of the link, GB/s of network per card.
struct SheetRates {
  double bf16, fp8, fp4;
};
constexpr CardSheet sheet(Generation generation, std::string_view name, SheetRates rates,
                          double memory_rate, double multiprocessors, double watts,
                          std::int64_t cache, std::int64_t memory, double link, double network,
                          std::int64_t domain = 0, double exponentials = 1) {
  return {.name = name,
          .card = {.generation = generation,
                   .bf16_flops = base::FlopsPerSecond(rates.bf16 * 1e12),
                   .fp8_flops = base::FlopsPerSecond(rates.fp8 * 1e12),
                   .fp4_flops = base::FlopsPerSecond(rates.fp4 * 1e12),
                   .memory_rate = base::BytesPerSecond(memory_rate * 1e9),
                   .multiprocessors = multiprocessors,
                   .exponentials = exponentials,
                   .watts = base::Watts(watts),
                   .cache = base::Bytes(cache * 1'000'000),
                   .memory = base::Bytes(memory * kSheetGb)},
          .link = base::BytesPerSecond(link * 1e9),
          .network = base::BytesPerSecond(network * 1e9),
          .domain = domain};
}

using enum Generation;
constexpr std::array<CardSheet, 32> kCardSheets = {{
    sheet(kAmpere, "A100-SXM4-40GB", {312, 312, 0}, 1555, 108, 400, 40, 40, 300, 25),
    sheet(kAmpere, "A100-SXM4-80GB", {312, 312, 0}, 2039, 108, 400, 40, 80, 300, 25),
    sheet(kAmpere, "A100-PCIe-80GB", {312, 312, 0}, 1935, 108, 300, 40, 80, 32, 12.5),
    sheet(kAmpere, "A100-PCIe-40GB", {312, 312, 0}, 1555, 108, 250, 40, 40, 32, 12.5),
    sheet(kAmpere, "A800", {312, 312, 0}, 2039, 108, 400, 40, 80, 200, 25),
    sheet(kHopper, "H100-SXM5-80GB", {989, 1979, 0}, 3350, 132, 700, 50, 80, 450, 50),
    // HBM2e, and a lower power limit.
    sheet(kHopper, "H100-SXM5-96GB", {989, 1979, 0}, 2400, 132, 500, 50, 96, 450, 50),
    sheet(kHopper, "H100-PCIe-80GB", {756, 1513, 0}, 2000, 114, 350, 50, 80, 64, 25),
    sheet(kHopper, "H100-NVL-94GB", {835, 1671, 0}, 3900, 132, 400, 50, 94, 300, 25),
    sheet(kHopper, "H200-SXM-141GB", {989, 1979, 0}, 4800, 132, 700, 50, 141, 450, 50),
    sheet(kHopper, "H800", {989, 1979, 0}, 3350, 132, 700, 50, 80, 200, 50),
    sheet(kHopper, "H20", {148, 296, 0}, 4000, 78, 400, 60, 96, 450, 50),
    sheet(kHopper, "GH200", {989, 1979, 0}, 4000, 132, 700, 50, 96, 450, 50),
    sheet(kBlackwell, "B100-SXM-192GB", {1750, 3500, 7000}, 8000, 148, 700, 126, 192, 900, 50),
    sheet(kBlackwell, "B200-SXM-180GB", {2250, 4500, 9000}, 8000, 148, 1000, 126, 180, 900, 50),
    sheet(kBlackwell, "GB200", {2500, 5000, 10000}, 8000, 148, 1200, 126, 186, 900, 50, 72),
    sheet(kBlackwell, "B300", {2250, 4500, 13500}, 8000, 148, 1100, 126, 270, 900, 100, 0, 2),
    sheet(kBlackwell, "GB300", {2500, 5000, 15000}, 8000, 148, 1400, 126, 278, 900, 100, 72, 2),
    sheet(kOlder, "V100-SXM2-32GB", {125, 125, 0}, 900, 80, 300, 6, 32, 150, 12.5),
    sheet(kWorkstation, "A40", {150, 150, 0}, 696, 84, 300, 6, 48, 32, 12.5),
    sheet(kWorkstation, "A6000", {155, 155, 0}, 768, 84, 300, 6, 48, 32, 12.5),
    sheet(kWorkstation, "L40S", {362, 733, 0}, 864, 142, 350, 96, 45, 32, 12.5),
    sheet(kWorkstation, "RTX4090", {165, 330, 0}, 1008, 128, 450, 72, 24, 32, 12.5),
    sheet(kWorkstation, "RTX3090", {71, 71, 0}, 936, 82, 350, 6, 24, 16, 12.5),
    sheet(kWorkstation, "RTX-PRO-6000", {500, 1000, 2000}, 1792, 188, 600, 128, 96, 64, 12.5),
    sheet(kWorkstation, "RTX5090", {210, 419, 1676}, 1792, 170, 575, 96, 32, 64, 12.5),
    sheet(kWorkstation, "RTX5060Ti", {47, 95, 379}, 448, 36, 180, 32, 16, 32, 12.5),
    sheet(kAmd, "MI250X", {191, 191, 0}, 1638, 110, 280, 8, 64, 50, 25),
    sheet(kAmd, "MI300X", {1307, 2615, 0}, 5300, 304, 750, 256, 192, 448, 50),
    sheet(kAmd, "MI325X", {1307, 2615, 0}, 6000, 304, 1000, 256, 256, 448, 50),
    sheet(kAmd, "MI350X", {2300, 4600, 9200}, 8000, 256, 1000, 256, 288, 538, 50),
    sheet(kAmd, "MI355X", {2500, 5000, 10000}, 8000, 256, 1400, 256, 288, 538, 50),
}};

const CardSheet* by_name(std::string_view name) {
  const auto* at = std::find_if(kCardSheets.begin(), kCardSheets.end(),
                                [&](const CardSheet& card) { return card.name == name; });
  return at == kCardSheets.end() ? nullptr : at;
}

// Words of names, and which card has them. The first that is found counts.
struct CardWord {
  std::string_view word;
  std::string_view name;
};
constexpr std::array<CardWord, 35> kCardWords = {{
    {"GB300", "GB300"},
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
    {"PRO 6000", "RTX-PRO-6000"},
    {"PRO-6000", "RTX-PRO-6000"},
    {"L40S", "L40S"},
    {"A6000", "A6000"},
    {"A40", "A40"},
    {"4090", "RTX4090"},
    {"RTX4090", "RTX4090"},
    {"3090", "RTX3090"},
    {"RTX3090", "RTX3090"},
    {"5090", "RTX5090"},
    {"RTX5090", "RTX5090"},
    {"5060", "RTX5060Ti"},
    {"5060TI", "RTX5060Ti"},
    {"RTX5060TI", "RTX5060Ti"},
    {"MI250", "MI250X"},
    {"MI250X", "MI250X"},
    {"MI300", "MI300X"},
    {"MI300X", "MI300X"},
    {"MI325", "MI325X"},
    {"MI325X", "MI325X"},
    {"MI350", "MI350X"},
    {"MI350X", "MI350X"},
    {"MI355", "MI355X"},
    {"MI355X", "MI355X"},
}};

// Where the text has the word, between others: "A40" is in "NVIDIA A40", not in "RTX A4000".
std::size_t find_word(std::string_view text, std::string_view word) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && (base::is_upper(text[i]) || base::is_digit(text[i]));
  };
  std::size_t at = text.find(word);
  while (at != std::string_view::npos && ((at > 0 && in_word(at - 1)) || in_word(at + word.size())))
    at = text.find(word, at + 1);
  return at;
}

std::string upper_case(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (base::is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// "8xH100", "8 x NVIDIA H100": without how many.
std::string_view without_count(std::string_view upper) {
  std::string_view rest = upper;
  while (!rest.empty() && base::is_digit(rest.front())) rest.remove_prefix(1);
  if (rest.size() == upper.size()) return upper;
  rest = base::trim(rest);
  for (const std::string_view times : {"X", "×", "*"}) {
    if (rest.starts_with(times)) return base::trim(rest.substr(times.size()));
  }
  return upper;
}

// Whether it has that much memory: "40GB", "-40"; not "400W", "40 GPUs".
bool has_memory(std::string_view upper, std::string_view gigabytes) {
  for (std::size_t at = upper.find(gigabytes); at != std::string_view::npos;
       at = upper.find(gigabytes, at + 1)) {
    const std::string_view behind = upper.substr(at + gigabytes.size());
    const bool inside = (at > 0 && (base::is_digit(upper[at - 1]) || upper[at - 1] == 'X')) ||
                        (!behind.empty() && base::is_digit(behind.front()));
    const std::string_view unit = base::trim(behind);
    const bool counted = unit.starts_with("GPU") || unit.starts_with("CARD") ||
                         unit.starts_with('W') || unit.starts_with('X');
    if (!inside && !counted) return true;
  }
  return false;
}

}  // namespace

std::string_view to_text(Generation generation) {
  constexpr std::array<std::string_view, 6> kGenerationNames = {
      "older", "Ampere", "Hopper", "Blackwell", "workstation", "AMD"};
  return kGenerationNames[static_cast<std::size_t>(generation)];
}

std::span<const CardSheet> card_table() {
  return kCardSheets;
}

const CardSheet* find_card(std::string_view name) {
  if (const CardSheet* card = by_name(name)) return card;
  const std::string written = upper_case(name);
  const std::string_view upper = without_count(written);
  const auto has = [&](std::string_view word) { return upper.find(word) != std::string::npos; };
  const auto has_word = [&](std::string_view word) {
    return find_word(upper, word) != std::string_view::npos;
  };
  if (const std::size_t a100 = find_word(upper, "A100"); a100 != std::string_view::npos) {
    if (has_memory(upper.substr(a100 + 4), "40"))
      return by_name(has("PCIE") ? "A100-PCIe-40GB" : "A100-SXM4-40GB");
    return by_name(has("PCIE") ? "A100-PCIe-80GB" : "A100-SXM4-80GB");
  }
  if (has_word("H100")) {
    if (has("PCIE")) return by_name("H100-PCIe-80GB");
    if (bridged_cards(upper) > 0) return by_name("H100-NVL-94GB");
    return by_name(has_memory(upper, "96") ? "H100-SXM5-96GB" : "H100-SXM5-80GB");
  }
  for (const CardWord& known : kCardWords) {
    if (has_word(known.word)) return by_name(known.name);
  }
  return nullptr;
}

std::optional<Card> card_of(std::string_view name) {
  const CardSheet* sheet = find_card(name);
  return sheet == nullptr ? std::nullopt : std::optional(sheet->card);
}

std::int64_t bridged_cards(std::string_view name) {
  constexpr std::int64_t kPair = 2;
  const std::string upper = upper_case(name);
  const std::size_t at = upper.find("NVL");
  if (at == std::string::npos) return 0;
  if (upper.find("PCIE") != std::string::npos) return kPair;  // "A100 PCIe, NVLink bridge"
  const std::string_view written = upper;
  if (find_word(without_count(written), "H100") == std::string_view::npos &&
      find_word(without_count(written), "H200") == std::string_view::npos)
    return 0;
  const std::string_view behind = written.substr(at + 3);
  if (behind.empty() || !(base::is_upper(behind.front()) || base::is_digit(behind.front())))
    return kPair;
  std::int64_t cards = 0;
  std::from_chars(behind.data(), behind.data() + behind.size(), cards);
  return cards == 2 || cards == 4 ? cards : 0;
}

bool has_block_scales(const Card& card, bool nvfp4) {
  return card.fp4_flops.count() > 0 && !(nvfp4 && card.generation == Generation::kAmd);
}

}  // namespace assay::plan
