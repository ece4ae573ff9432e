#include "compare/ranking.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace assay::compare {
namespace {

bool excludes_zero(const Estimate& estimate) {
  return estimate.method != Method::kNone && !estimate.interval.contains(0);
}

// Holm's procedure without p-values: as long as pairs differ at the level for those that are left,
// they are taken out, which raises the level.
void tell_apart(const std::vector<std::vector<double>>& differences, std::vector<ArmPair>& pairs) {
  std::vector<std::size_t> left(pairs.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::size_t before = left.size() + 1;
  while (!left.empty() && left.size() < before) {
    before = left.size();
    const double alpha = kTotalAlpha / static_cast<double>(before);
    std::erase_if(left, [&](std::size_t i) {
      pairs[i].differ = excludes_zero(estimate_of(differences[i], alpha));
      return pairs[i].differ;
    });
  }
}

// The arms from best to worst, by the estimates of their differences from the first.
std::vector<std::size_t> sorted_arms(const Experiment& e, const std::vector<ArmPair>& pairs) {
  std::vector<double> worse(e.arms.size(), 0);
  for (const ArmPair& pair : pairs) {
    if (pair.from != 0) continue;
    worse[pair.arm] = e.judgement.more_is_better ? -pair.estimate.centre : pair.estimate.centre;
  }
  std::vector<std::size_t> arms(e.arms.size());
  std::iota(arms.begin(), arms.end(), std::size_t{0});
  std::stable_sort(arms.begin(), arms.end(),
                   [&](std::size_t a, std::size_t b) { return worse[a] < worse[b]; });
  return arms;
}

const ArmPair& pair_of(const std::vector<ArmPair>& pairs, std::size_t a, std::size_t b) {
  return *std::ranges::find_if(pairs, [&](const ArmPair& pair) {
    return pair.from == std::min(a, b) && pair.arm == std::max(a, b);
  });
}

std::string group_text(const Experiment& e, const std::vector<std::size_t>& group) {
  std::vector<std::string> names;
  for (const std::size_t arm : group) names.push_back(e.name_of(arm));
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace

Ranking ranking_of(const Experiment& e, const Blocks& blocks) {
  Ranking ranking;
  const std::size_t count = e.arms.size();
  if (count < 3) return ranking;
  ranking.pair_alpha = kTotalAlpha / static_cast<double>(count * (count - 1) / 2);
  std::vector<std::vector<double>> found;
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t arm = from + 1; arm < count; ++arm) {
      found.push_back(differences(blocks, from, arm));
      ranking.pairs.push_back({from, arm, estimate_of(found.back(), ranking.pair_alpha)});
    }
  }
  tell_apart(found, ranking.pairs);
  const std::vector<std::size_t> arms = sorted_arms(e, ranking.pairs);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const auto differs = [&](std::size_t behind) {
      return std::all_of(
          arms.begin(), arms.begin() + static_cast<std::ptrdiff_t>(i),
          [&](std::size_t before) { return pair_of(ranking.pairs, before, behind).differ; });
    };
    const bool new_group =
        std::all_of(arms.begin() + static_cast<std::ptrdiff_t>(i), arms.end(), differs);
    if (new_group) ranking.groups.emplace_back();
    ranking.groups.back().push_back(arms[i]);
  }
  return ranking;
}

std::string ranking_text(const Experiment& e, const Ranking& ranking) {
  if (ranking.empty()) return {};
  const char* word = e.is_time() || e.judgement.more_is_better ? "fastest" : "least";
  const std::vector<std::size_t>& best = ranking.groups.front();
  if (ranking.pairs.front().estimate.method == Method::kNone) {
    return fmt::format("{}: not known, too few pairs for an interval", word);
  }
  if (ranking.groups.size() == 1) {
    return fmt::format("{}: {}, not distinguishable in all pairs together at 95 %", word,
                       group_text(e, best));
  }
  std::vector<std::string> groups;
  for (const auto& group : ranking.groups) groups.push_back(group_text(e, group));
  return fmt::format("{}: {}; order: {} (all pairs together at 95 %{})", word, groups.front(),
                     fmt::join(groups, ", then "),
                     ranking.groups.size() < e.arms.size() ? "; \"or\": not distinguishable" : "");
}

}  // namespace assay::compare
