#include "train/checkpoint/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"

namespace assay::checkpoint {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kDigits = 5;  // minimum; more if there are more shards

bool is_shard_number(std::string_view text) {
  return text.size() >= kDigits && text.size() < 10 && base::is_digits(text);
}

}  // namespace

std::vector<WeightShard> plan_shards(const std::string& part, std::span<const Tensor> tensors,
                                     std::int64_t limit_bytes) {
  std::vector<WeightShard> shards;
  std::size_t first = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto size = static_cast<std::int64_t>(tensors[i].data.size());
    if (i > first && bytes + size > limit_bytes) {
      shards.push_back({"", tensors.subspan(first, i - first)});
      first = i;
      bytes = 0;
    }
    bytes += size;
  }
  shards.push_back({"", tensors.subspan(first)});
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = shards.size() == 1
                         ? fmt::format("{}{}", part, kSuffix)
                         : fmt::format("{}-{:05}-of-{:05}{}", part, i + 1, shards.size(), kSuffix);
  }
  return shards;
}

std::string index_name(const std::string& part) {
  return fmt::format("{}{}.index.json", part, kSuffix);
}

std::string index_text(std::span<const WeightShard> shards) {
  std::int64_t total = 0;
  base::Json map = base::Json::object();
  // Names are known to be distinct: the ordered object's own lookup would take quadratic time.
  auto& entries = map.get_ref<base::Json::object_t&>();
  for (const WeightShard& shard : shards) {
    for (const Tensor& tensor : shard.tensors) {
      total += static_cast<std::int64_t>(tensor.data.size());
      entries.emplace_back(tensor.info.name, shard.file);
    }
  }
  return base::json_text(
      base::Json{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}});
}

std::optional<ShardName> parse_shard_name(std::string_view file) {
  if (!file.ends_with(kSuffix)) return std::nullopt;
  file.remove_suffix(kSuffix.size());
  const std::size_t of = file.rfind(kOf);
  const std::size_t dash =
      of == std::string_view::npos || of == 0 ? std::string_view::npos : file.rfind('-', of - 1);
  if (dash == std::string_view::npos) return ShardName{std::string(file), 1};
  const std::string_view count = file.substr(of + kOf.size());
  if (!is_shard_number(file.substr(dash + 1, of - dash - 1)) || !is_shard_number(count)) {
    return ShardName{std::string(file), 1};
  }
  return ShardName{std::string(file.substr(0, dash)),
                   base::parse_number<std::int64_t>(count).value_or(0)};
}

base::Result<void> check_part_name(const std::string& part) {
  const bool plain = std::all_of(part.begin(), part.end(), [](char c) {
    return base::is_lower(c) || base::is_upper(c) || base::is_digit(c) || c == '_' || c == '.';
  });
  if (plain && !part.empty() && part.front() != '.' && part.size() < 100) return {};
  return base::fail(base::usage_error(fmt::format("part '{}'", part),
                                      "a part of a checkpoint cannot have this name",
                                      "use letters, digits, '_' and '.'"));
}

}  // namespace assay::checkpoint
