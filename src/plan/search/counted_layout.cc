#include "plan/search/counted_layout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/rank_footprints.h"

namespace assay::plan {
namespace {

// If none of the ranked layouts fits by count, all closed forms were too low: the next search gets
// this fraction of the memory.
constexpr double kLess = 0.85;
constexpr int kMostSearches = 12;

std::optional<MemoryNeed> counted(const spec::JobSpec& job, const LayoutChoice& choice) {
  spec::JobSpec run = job;
  run.layout = choice.layout;
  run.batch = choice.batch;
  run.train.recompute = recompute_key(choice.recompute);
  return counted_memory(run);
}

// The same layout with the next policy, which keeps less.
std::optional<LayoutChoice> recomputing_more(const LayoutSearch& search, const LayoutChoice& choice,
                                             const ModelConstants& constants) {
  const auto kinds = recomputations_of(search.work.software.framework);
  auto next = std::find(kinds.begin(), kinds.end(), choice.recompute);
  if (next == kinds.end() || ++next == kinds.end()) return std::nullopt;
  Work work = search.work;
  if (work.muon) {
    spec::JobSpec job = search.job;
    job.layout = choice.layout;
    const auto exchange = muon_exchange_of(job);
    if (!exchange) return std::nullopt;
    work.muon_exchange = *exchange;
  }
  spread(work, choice.layout, choice.batch);
  work.recompute = *next;
  LayoutChoice more = choice;
  more.recompute = *next;
  more.step = step_seconds(work, constants.time);
  more.memory = memory_need(work, constants.memory);
  return more;
}

// Of `ranked`, fastest first.
std::optional<LayoutChoice> first_that_fits(const LayoutSearch& search,
                                            std::vector<LayoutChoice> ranked,
                                            const ModelConstants& constants) {
  while (!ranked.empty()) {
    LayoutChoice choice = ranked.front();
    ranked.erase(ranked.begin());
    const auto need = counted(search.job, choice);
    if (!need) return choice;
    if (need->total() <= search.memory) {
      choice.memory = *need;
      choice.counted = true;
      return choice;
    }
    if (const auto more = recomputing_more(search, choice, constants)) {
      const auto faster = [](const LayoutChoice& a, const LayoutChoice& b) {
        return a.step < b.step;
      };
      ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), *more, faster), *more);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<LayoutChoice> fastest_counted(const LayoutSearch& search, FastestLayout found,
                                            const ModelConstants& constants) {
  if (search.work.trainer == nullptr) return found.best;
  base::Bytes memory = search.memory;
  for (int searches = 0; found.best && searches < kMostSearches; ++searches) {
    if (auto fits = first_that_fits(search, std::move(found.ranked), constants)) return fits;
    memory = base::Bytes(static_cast<std::int64_t>(kLess * static_cast<double>(memory.count())));
    found = fastest_layout(search.job, search.work, search.sequences, memory, constants);
  }
  return std::nullopt;
}

}  // namespace assay::plan
