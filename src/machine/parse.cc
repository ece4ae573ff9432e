// See parse.h. Everything here must accept arbitrary bytes.
#include "machine/parse.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/number.h"
#include "base/text.h"

namespace assay::machine {
namespace {

// More processors than any kernel supports (NR_CPUS is at most 8192), few enough to list.
constexpr int kMaxCpu = 65535;

}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  return base::parse_number<std::int64_t>(text);
}

std::optional<std::int64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return base::parse_number<std::int64_t>(text, 16);
}

std::optional<double> parse_double(std::string_view text) {
  return base::parse_number<double>(text, std::chars_format::fixed);
}

std::optional<int> parse_small(std::string_view text, int low, int high) {
  const auto value = parse_int(text);
  if (!value || *value < low || *value > high) return std::nullopt;
  return static_cast<int>(*value);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (auto at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  pieces.push_back(text);
  return pieces;
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string_view> pieces;
  for (auto start = text.find_first_not_of(kBlank); start != std::string_view::npos;
       start = text.find_first_not_of(kBlank)) {
    text.remove_prefix(start);
    const auto length = std::min(text.find_first_of(kBlank), text.size());
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  if (text.empty()) return cpus;
  int next = 0;  // the kernel writes ascending lists; requiring that bounds the result
  for (const std::string_view range : split(text, ',')) {
    const auto dash = range.find('-');
    const auto first = parse_small(range.substr(0, dash), next, kMaxCpu);
    if (!first) return std::nullopt;
    auto last = first;
    if (dash != std::string_view::npos) {
      last = parse_small(range.substr(dash + 1), *first, kMaxCpu);
    }
    if (!last) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    next = *last + 1;
  }
  return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

std::optional<std::string_view> field(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line = base::trim(line.substr(key.size()));
    if (line.starts_with(':')) return base::trim(line.substr(1));
  }
  return std::nullopt;
}

std::optional<base::Bytes> kib_field(std::string_view text, std::string_view key) {
  auto value = field(text, key);
  if (!value || !value->ends_with(" kB")) return std::nullopt;
  value->remove_suffix(3);
  const auto kib = parse_int(*value);
  if (!kib || *kib < 0 || *kib > std::numeric_limits<std::int64_t>::max() / 1024) {
    return std::nullopt;
  }
  return base::Bytes(*kib * 1024);
}

std::optional<int> parse_pcie_generation(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 7> kGenerations = {
      {{"2.5", 1}, {"5.0", 2}, {"8.0", 3}, {"16.0", 4}, {"32.0", 5}, {"64.0", 6}, {"128.0", 7}}};
  const auto unit = text.find(" GT/s");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::string_view speed = text.substr(0, unit);
  for (const auto& [transfers, generation] : kGenerations) {
    // Older kernels write whole numbers without a fraction.
    if (speed == transfers || fmt::format("{}.0", speed) == transfers) return generation;
  }
  return std::nullopt;
}

std::optional<base::BytesPerSecond> parse_infiniband_rate(std::string_view text) {
  const auto unit = text.find(" Gb/sec");
  if (unit == std::string_view::npos) return std::nullopt;
  const auto gigabits = parse_double(text.substr(0, unit));
  if (!gigabits || *gigabits <= 0.0 || *gigabits > 1e6) return std::nullopt;
  return base::BytesPerSecond(*gigabits * 1e9 / 8.0);
}

}  // namespace assay::machine
