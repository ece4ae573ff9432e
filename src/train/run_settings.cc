#include "train/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "base/text.h"
#include "hash/blake3.h"
#include "spec/schema.h"

namespace assay::train {
namespace {

constexpr auto kNotStored = std::to_array<std::string_view>(
    {// The length of the run and the recipe, which have their own rules (keep_recipe).
     "steps", "tokens", "tokens_per_matmul_parameter", "learning_rate", "warmup_steps",
     // Always the same in a resumed run (restore).
     "optimizer", "seed",
     // Of initial weights.
     "init_std", "embedding_init_std", "head_init_std",
     // No effect on weights or losses.
     "recompute", "non_finite", "max_skipped", "validate_every"});

// What identifies a shard's tokens.
void add(const data::Shard& shard, hash::Hasher& hasher) {
  const std::array<std::uint64_t, 2> facts = {shard.count(),
                                              static_cast<std::uint64_t>(shard.type())};
  hasher.update(std::as_bytes(std::span(facts)));
  if (const auto& digest = shard.digest()) {
    const std::string hex = digest->hex();
    return hasher.update(std::as_bytes(std::span(hex)));
  }
  constexpr std::size_t kSample = std::size_t{64} << 10U;
  const std::span<const std::byte> bytes = shard.payload();
  const std::size_t size = std::min(kSample, bytes.size());
  hasher.update(bytes.first(size));
  hasher.update(bytes.last(size));
}

std::string value_text(const base::Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "not set";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

base::Json settings_of(const spec::JobSpec& job) {
  base::Json settings = base::Json::object();
  const base::Json train = spec::section_json(job.train);
  for (const auto& [key, value] : train.items()) {
    if (std::ranges::find(kNotStored, key) != kNotStored.end()) continue;
    settings["train." + key] = value;
  }
  settings["batch.micro_batch"] = job.batch.micro_batch;
  if (job.data.validation) settings["data.validation"] = *job.data.validation;
  return settings;
}

base::Json data_of(const spec::JobSpec& job, const data::BatchReader& reader) {
  hash::Hasher hasher;
  std::uint64_t tokens = 0;
  for (const data::TokenSet* set : reader.sets()) {
    tokens += set->tokens();
    for (const data::Shard& shard : set->shards()) add(shard, hasher);
  }
  return {{"source", job.data.mix.value_or(job.data.train.value_or("the built-in text"))},
          {"tokens", tokens},
          {"blake3", hasher.finish().hex()}};
}

bool is_same_data(const base::Json& before, const base::Json& now) {
  return before.value("blake3", "") == now.value("blake3", "");
}

std::string data_text(const base::Json& data) {
  return fmt::format("{} ({} tokens)", data.value("source", "?"),
                     base::grouped(data.value("tokens", std::int64_t{0})));
}

std::vector<std::string> changes_of(const base::Json& before, const base::Json& now) {
  std::set<std::string> keys;
  for (const auto& [key, value] : before.items()) keys.insert(key);
  for (const auto& [key, value] : now.items()) keys.insert(key);
  std::vector<std::string> changes;
  for (const std::string& key : keys) {
    const std::string was = value_text(before, key);
    const std::string is = value_text(now, key);
    if (was != is) changes.push_back(fmt::format("{} {} -> {}", key, was, is));
  }
  return changes;
}

}  // namespace assay::train
